//! Error messages that a user sees for an unusable description.

use std::fs;
use tombolo_machine::{ConfigError, Description, MachineConfig, MachineScale, machine};
use tombolo_types::{Ps, Rate};

/// The error from checking `hmg-4x4` with one setting applied.
fn refused(path: &str, value: &str) -> String {
    let mut description = machine("hmg-4x4").unwrap();
    description.set(path, value).unwrap();
    description.check().unwrap_err().to_string()
}

/// `hmg-4x4` with the given settings applied.
fn with(settings: &[(&str, &str)]) -> MachineConfig {
    let mut description = machine("hmg-4x4").unwrap();
    settings.iter().for_each(|(path, value)| description.set(path, value).unwrap());
    description.check().unwrap()
}

fn own(text: &str) -> Result<MachineConfig, ConfigError> {
    Description::parse("mine.toml", text).and_then(|description| description.check())
}

#[test]
fn a_setting_replaces_a_value_in_any_unit() {
    assert_eq!(with(&[("l2.bytes", "6MB")]).l2.bytes, 6 << 20);
    assert_eq!(with(&[("machine.l2.bytes", "6MiB")]).l2.bytes, 6 << 20);
    assert_eq!(with(&[("gpu_link.rate", "0.4TB/s")]).gpu_link.rate, Rate(400_000_000_000));
    assert_eq!(with(&[("gpu_link.rate", "infinite")]).gpu_link.rate, Rate::INFINITE);
    assert_eq!(with(&[("gpu_link.latency", "130 cycles")]).gpu_link.latency, Ps(100_000));
    assert_eq!(with(&[("line", "64B"), ("l1.set_index", "low-bits")]).line.bytes(), 64);
}

#[test]
fn cycles_follow_the_clock_that_a_setting_gives() {
    let fast = with(&[("sm.clock", "2GHz")]);
    assert_eq!(fast.l1.hit_latency, Ps(14_000), "28 cycles");
    assert_eq!(fast.crossbar.rate, Rate(128_000_000_000), "64 B a cycle");
    assert_eq!(fast.gpu_link.latency, Ps(128_000), "stated in ns");
}

#[test]
fn the_last_setting_wins() {
    assert_eq!(with(&[("l2.ways", "8"), ("l2.ways", "4")]).l2.ways, 4);
}

#[test]
fn an_unknown_setting_lists_near_names_and_the_sections_keys() {
    let error = machine("hmg-4x4").unwrap().set("l2.byte", "6MB").unwrap_err().to_string();
    assert!(error.starts_with("setting l2.byte=6MB: no key l2.byte (did you mean l2.bytes?"), "{error}");
    assert!(error.contains("section l2 of a machine has l2.bytes, l2.ways, l2.slices"), "{error}");
    let error = machine("hmg-4x4").unwrap().set("gpulink.rate", "1GB/s").unwrap_err().to_string();
    assert!(error.contains("did you mean gpu_link.rate"), "{error}");
    assert!(error.contains("a machine has line, page_bytes, topology, sm, l1, l2"), "{error}");
    assert!(machine("hmg-4x4").unwrap().set("l2", "6MB").is_err(), "a section takes no value");
    assert!(machine("hmg-4x4").unwrap().set("l2.bytes.x", "6MB").is_err());
    assert!(machine("hmg-4x4").unwrap().set("name", "x").is_err());
}

#[test]
fn the_error_for_a_wrong_value_names_the_allowed_values() {
    let expected = "setting l2.bytes=6Mb: l2.bytes = 6Mb: expected a size from 1 byte to 512 TB";
    assert!(refused("l2.bytes", "6Mb").starts_with(expected));
    for (path, wrong, allowed) in [
        ("l2.bytes", "-1", "a size from 1 byte"),
        ("l2.bytes", "0", "a size from 1 byte"),
        ("l2.ways", "1.5", "a whole number from 1"),
        ("topology.gpus", "256", "a whole number from 1 to 255"),
        ("gpu_link.rate", "0GB/s", "a rate above zero"),
        ("gpu_link.rate", "200", "a rate above zero"),
        ("gpu_link.rate", "200GB", "a rate above zero"),
        ("gpu_link.latency", "12", "a time of at most one second"),
        ("gpu_link.latency", "2s", "a time of at most one second"),
        ("gpu_link.latency", "1.5 turns", "a time of at most one second"),
        ("gpu_link.latency", "99999999999999999 cycles", "a time of at most one second"),
        ("sm.clock", "1.3", "a frequency from 1 kHz"),
        ("sm.clock", "0.1kHz", "a frequency from 1 kHz"),
        ("sm.fp32_cycles", "1/0", "a number above zero"),
        ("sm.scheduler", "oldest", "one of \"greedy-oldest\", \"greedy-round-robin\""),
        ("line", "96", "32, 64, 128 or 256"),
        ("messages.mask_bytes", "x", "a size from 0 bytes"),
        ("energy.dram_per_bit", "3.92", "an energy from 0 to 1000 nJ"),
        ("energy.dram_per_bit", "1uJ", "an energy from 0 to 1000 nJ"),
        ("energy.l1i_instructions_per_fetch", "0", "a whole number from 1"),
    ] {
        let error = refused(path, wrong);
        assert!(error.contains(&format!("{path} = {wrong}: expected {allowed}")), "{error}");
    }
}

#[test]
fn values_that_do_not_go_together_say_why() {
    for (path, value, reason) in [
        ("l2.bytes", "3000000", "a multiple of 32768 bytes (16 slices × 16 ways × 128-byte lines)"),
        ("l1.ways", "3", "a multiple of 384 bytes"),
        ("l1.ways", "2048", "at most 32"),
        ("tlb.l1_entries", "33", "at most 32"),
        ("tlb.l2_ways", "64", "at most 32"),
        ("l2.bytes", "100GB", "at most 1073741824"),
        ("l2.set_index", "low-bits", "96 sets are no power of two; use \"hashed\""),
        ("l1.sector_bytes", "2", "a power of two from 4 to the line of 128 bytes"),
        ("l1.sector_bytes", "256", "a power of two from 4 to the line of 128 bytes"),
        ("l2.fetch_bytes", "256", "a power of two from the sector of 32 bytes to the line of 128"),
        ("l2.fetch_bytes", "16", "a power of two from the sector of 32 bytes to the line of 128"),
        ("messages.header_bytes", "4097", "at most 4096 is supported"),
        ("messages.control_bytes", "64KB", "at most 4096 is supported"),
        ("messages.flit_bytes", "8KB", "at most 4096 is supported"),
        ("topology.modules_per_gpu", "100", "make 400 modules; at most 255 have ids"),
        ("topology.sms_per_module", "5000", "this makes 80384 components; fewer than 65536 have ids"),
        ("sm.warp_width", "48", "32 or 64 lanes"),
        ("topology.gpus", "64", "make 256 modules; at most 255 have ids"),
        ("sm.warps", "65", "at most 64"),
        ("sm.sub_cores", "3", "64 warps cannot be shared equally"),
        ("sm.threads", "31", "expected 32 (one warp) to 2048 (64 warps)"),
        ("sm.ctas", "65", "a CTA has at least one warp"),
        ("sm.pending_loads", "65", "at most 64"),
        ("sm.fp32_latency_cycles", "0", "a whole number from 1"),
        ("sm.fp64_latency_cycles", "3", "expected 1, or at least the 4 cycles that it takes to issue"),
        ("sm.special_latency_cycles", "65536", "at most 65535"),
        ("l1.lookups_per_cycle", "65", "at most 64"),
        ("directory.entries", "100", "a multiple of the 16 ways"),
        ("l1.bytes", "1GB", "at most 33554432"),
        ("directory.ways", "2000", "at most 32"),
        ("directory.entries", "4000000000", "at most 8388608"),
        ("directory.lines_per_entry", "3", "a power of two"),
        ("directory.lines_per_entry", "128", "at most 64"),
        ("directory.tag_bits", "65", "at most 64"),
        ("page_bytes", "3MB", "a power of two"),
        ("page_bytes", "256", "a directory entry tracks 512 bytes, which must have one home"),
        ("crossbar.latency", "0ns", "takes time"),
        ("module_link.latency", "0ns", "takes time"),
        ("gpu_link.latency", "0ns", "takes time"),
        ("gpu_link.lanes", "65", "at most 64"),
        ("dram.row_bytes", "64", "at least the line of 128 bytes"),
        ("dram.burst_bytes", "256", "at most the line of 128 bytes"),
        ("dram.bytes", "1000", "whole pages of 2097152 bytes"),
        ("dram.channels", "2000", "at most 1024"),
        ("dram.banks", "2000", "at most 1024"),
        ("tlb.l2_ways", "3", "a multiple of the 3 ways"),
        ("l2.mshrs", "100000", "at most 65535"),
        ("l2.mshrs", "2", "at least 3"),
        ("l1.merges", "100000", "at most 65535"),
        ("l2.posted_stores", "100000", "at most 65536"),
    ] {
        let error = refused(path, value);
        assert!(error.contains(reason), "{path}={value}: {error}");
    }
}

#[test]
fn links_that_nothing_crosses_may_be_instant() {
    let one = with(&[("topology.gpus", "1"), ("gpu_link.latency", "0ns")]);
    assert_eq!(one.gpu_link.latency, Ps::ZERO);
    let undivided = with(&[("topology.modules_per_gpu", "1"), ("module_link.latency", "0ns")]);
    assert_eq!(undivided.module_link.latency, Ps::ZERO);
}

#[test]
fn an_error_in_a_file_names_file_line_key_value_and_allowed_values() {
    let error = own("base = \"hmg-4x4\"\n\n[l2]\nways = \"many\"\n").unwrap_err().to_string();
    assert_eq!(error, "mine.toml:4: l2.ways = many: expected a whole number from 1 to 4294967295");
}

#[test]
fn an_unknown_key_of_a_file_is_refused_everywhere() {
    let error = own("base = \"hmg-4x4\"\n[l2]\nsize = 3\n").unwrap_err().to_string();
    assert!(error.starts_with("mine.toml:3: no key l2.size; section l2 has bytes, ways, slices"), "{error}");
    let error = own("base = \"hmg-4x4\"\n[l3]\nbytes = 3\n").unwrap_err().to_string();
    assert!(error.starts_with("mine.toml:2: no key l3 (did you mean l1 or l2?); a file has name,"), "{error}");
    let error = own("base = \"hmg-4x4\"\nl2 = 3\n").unwrap_err().to_string();
    assert!(error.contains("l2 = 3: expected a section with the keys bytes, ways"), "{error}");
    let error = own("base = \"hmg-4x4\"\n[line]\nx = 3\n").unwrap_err().to_string();
    assert!(error.contains("mine.toml:2: line = a section: expected 32, 64, 128 or 256 bytes"), "{error}");
}

#[test]
fn a_missing_key_is_named() {
    let error = own("line = 128\npage_bytes = \"2MB\"\n[sm]\nwarps = 64\n").unwrap_err().to_string();
    assert!(error.starts_with("mine.toml:3: key sm.clock is missing; it takes a frequency"), "{error}");
    let error = own("").unwrap_err().to_string();
    assert!(error.starts_with("mine.toml:1: key sm.clock is missing"), "{error}");
}

#[test]
fn a_file_builds_on_a_preset_or_on_a_file_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("fast.toml"), "base = \"hmg-4x4\"\n[gpu_link]\nrate = \"400GB/s\"\n").unwrap();
    fs::write(path("faster.toml"), "base = \"fast.toml\"\n[gpu_link]\nlatency = \"64ns\"\n").unwrap();
    let config = machine(path("faster.toml").to_str().unwrap()).unwrap().check().unwrap();
    assert_eq!((config.name.as_str(), config.gpu_link.rate), ("faster", Rate(400_000_000_000)));
    assert_eq!((config.gpu_link.latency, config.topology.gpus), (Ps(64_000), 4));
    assert_eq!(config.description, "based on fast.toml");
}

#[test]
fn a_circle_of_bases_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.toml");
    fs::write(&path, "base = \"a.toml\"\n").unwrap();
    let error = machine(path.to_str().unwrap()).unwrap_err().to_string();
    assert!(error.contains("more than 8 files build on one another"), "{error}");
}

#[test]
fn a_missing_base_is_reported_at_the_place_that_names_it() {
    let error = own("\nbase = \"hmg-5x5\"\n").unwrap_err().to_string();
    assert!(error.starts_with("mine.toml:2: base = hmg-5x5: no machine is called \"hmg-5x5\""), "{error}");
}

#[test]
fn the_error_for_an_unknown_name_lists_the_known_names() {
    let error = machine("hmg-4x5").unwrap_err().to_string();
    assert!(error.contains("no machine is called \"hmg-4x5\" (did you mean hmg-4x4"), "{error}");
    assert!(error.contains("there are hmg-4x4, hmg-4x4-wide, hmg-1x4, numa-1"), "{error}");
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.toml");
    let message = || machine(path.to_str().unwrap()).unwrap_err().to_string();
    assert!(message().contains("m.toml: No such file"));
    fs::create_dir(&path).unwrap();
    assert!(message().ends_with("m.toml: not a file"));
    fs::remove_dir(&path).unwrap();
    fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
    assert!(message().contains("not UTF-8"));
    fs::write(&path, "#".repeat(2 << 20)).unwrap();
    assert!(message().contains("a description has at most 1048576"));
    fs::write(&path, "a = 1\n[l2\n").unwrap();
    assert!(message().contains("m.toml:2: "), "{}", message());
}

#[test]
fn the_error_for_a_scale_without_whole_sms_lists_the_allowed_scales() {
    let whole = machine("hmg-4x4").unwrap().check().unwrap();
    let error = whole.scaled("1/5".parse().unwrap()).unwrap_err().to_string();
    assert!(error.contains("have 32 SMs and must keep a whole number: allowed are k/32 for k from 1 to 32"), "{error}");
    assert!(error.contains("nearest: 3/16 and 7/32; round ones: 1, 1/2, 1/4, 1/8, 1/16, 1/32"), "{error}");
    let error = whole.scaled("1/64".parse().unwrap()).unwrap_err().to_string();
    assert!(error.contains("nearest: 1/32;"), "{error}");
}

#[test]
fn any_scale_has_one_with_whole_sms_nearby() {
    let rounded = |scale: &str, sms: &[u16]| {
        let scale: MachineScale = scale.parse().unwrap();
        scale.with_whole_sms(sms.iter().copied()).to_string()
    };
    assert_eq!(rounded("1/16", &[32]), "1/16");
    assert_eq!(rounded("0.07", &[32]), "1/16");
    assert_eq!(rounded("3/64", &[32]), "1/16", "halves go up");
    assert_eq!(rounded("1/1000", &[32]), "1/32", "one SM stays");
    assert_eq!(rounded("1/16", &[60]), "1/15");
    assert_eq!(rounded("1/16", &[60, 240, 40]), "1/20", "all of them");
    assert_eq!(rounded("0.999", &[80]), "1");
}

#[test]
fn a_machine_scales_once() {
    let half = machine("v100").unwrap().check().unwrap().scaled("0.5".parse().unwrap()).unwrap();
    let error = half.scaled("0.5".parse().unwrap()).unwrap_err().to_string();
    assert!(error.contains("it is 1/2 of a machine already"), "{error}");
    assert_eq!(half.scaled(MachineScale::FULL).unwrap(), half);
}

#[test]
fn pages_do_not_shrink_below_a_directory_region() {
    let small = with(&[("page_bytes", "4KB")]).scaled("1/32".parse().unwrap()).unwrap();
    assert_eq!(small.page_bytes, 512);
}

#[test]
fn a_scale_is_an_exact_fraction() {
    let scale = |text: &str| text.parse::<MachineScale>().map(|scale| scale.to_string());
    assert_eq!(scale("0.0625").unwrap(), "1/16");
    assert_eq!(scale(" 2/32 ").unwrap(), "1/16");
    assert_eq!(scale("1").unwrap(), "1");
    assert_eq!(scale("1.0").unwrap(), "1");
    for wrong in ["0", "2", "1/0", "-1", "half", "", "1/", "/2", "1e-2", "0.00000000000000000001", "3/2"] {
        assert!(scale(wrong).unwrap_err().to_string().contains("such as 1/16, 0.0625 or 1"), "{wrong}");
    }
}

#[test]
fn a_setting_may_give_its_value_as_a_file_does() {
    let size = |value: &str| with(&[("l2.bytes", value)]).l2.bytes;
    assert_eq!([size("\"3MB\""), size("'3MB'"), size(" \"3MB\" ")], [3 << 20; 3]);
    for wrong in ["\"3MB", "\"3MB\" \"4MB\"", "\"3MB\"\nx = 1", "[\"3MB\"", "[[1]]", "["] {
        let error = refused("l2.bytes", wrong);
        assert!(
            error.starts_with(&format!("setting l2.bytes={wrong}: l2.bytes = {wrong}: expected a size")),
            "{error}"
        );
    }
    assert!(refused("l2.bytes", "\"3XB\"").contains("l2.bytes = 3XB: expected a size"));
}

#[test]
fn a_conflict_caused_by_a_setting_is_blamed_on_the_setting() {
    for (path, value, beside) in [
        ("sm.warps", "1", "sm.sub_cores = 4"),
        ("sm.warps", "32", "sm.threads"),
        ("directory.ways", "7", "directory.entries"),
        ("page_bytes", "64GB", "dram.bytes"),
        ("topology.gpus", "200", "topology.modules_per_gpu"),
    ] {
        let error = refused(path, value);
        assert!(error.starts_with(&format!("setting {path}={value}: {path} = {value}: ")), "{error}");
        assert!(error.contains(beside), "{error}");
    }
    assert!(refused("sm.warps", "1").contains("beside sm.sub_cores = 4 of preset machines/hmg-4x4.toml:"));
}

#[test]
fn a_conflict_caused_by_two_settings_is_blamed_on_both() {
    let mut machine = machine("hmg-4x4").unwrap();
    // Either setting alone leaves a multiple; both together leave 64 KB in 3 ways for 16 slices.
    [("l2.slices", "5"), ("l2.ways", "7")].iter().for_each(|(path, value)| machine.set(path, value).unwrap());
    let error = machine.check().unwrap_err().to_string();
    assert!(error.starts_with("setting l2.slices=5, l2.ways=7: l2.bytes = "), "{error}");
}

#[test]
fn a_conflict_with_a_base_file_is_blamed_on_the_derived_file() {
    let text = "base = \"hmg-4x4\"\n[sm]\nwarps = 1\n";
    let error = Description::<MachineConfig>::parse("own.toml", text).unwrap().check().unwrap_err().to_string();
    assert!(
        error.starts_with("own.toml:3: sm.warps = 1: beside sm.sub_cores = 4 of preset machines/hmg-4x4.toml:"),
        "{error}"
    );
}

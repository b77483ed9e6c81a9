//! Properties that hold for every shipped machine.

use serde_json::Value;
use std::path::PathBuf;
use tombolo_machine::coherent_host::HostPath;
use tombolo_machine::description::DescriptionKind;
use tombolo_machine::machine::FabricShape;
use tombolo_machine::{Description, MachineConfig, MachineScale};
use tombolo_machine::{list_machines, machine};
use tombolo_types::{Ps, Rate};

fn machines() -> Vec<MachineConfig> {
    list_machines().iter().map(|listed| machine(listed.name).unwrap().check().unwrap()).collect()
}

fn preset_files() -> Vec<PathBuf> {
    let folder = |name| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("presets").join(name);
    let files = |name| std::fs::read_dir(folder(name)).unwrap().map(|entry| entry.unwrap().path());
    files("machines").collect()
}

#[test]
fn every_preset_loads_under_its_own_name_with_a_line_for_lists() {
    for (config, listed) in machines().iter().zip(list_machines()) {
        assert_eq!((config.name.as_str(), &config.description), (listed.name, &listed.description));
        assert!(!listed.description.is_empty(), "{}", listed.name);
    }
}

#[test]
fn every_file_in_the_folders_is_listed() {
    let listed: Vec<&str> = list_machines().iter().map(|listed| listed.name).collect();
    assert_eq!(preset_files().len(), listed.len());
    for file in preset_files() {
        let name = file.file_stem().unwrap().to_str().unwrap();
        assert!(listed.contains(&name), "{name} ships but is not listed");
    }
}

#[test]
fn every_value_of_every_preset_states_its_source() {
    for file in preset_files() {
        for (number, line) in std::fs::read_to_string(&file).unwrap().lines().enumerate() {
            let is_value = line.contains('=') && !line.starts_with('#');
            let source = line.split_once("# Source: ").map_or("", |(_, source)| source.trim());
            assert!(!is_value || source.len() > 2, "{}:{}: no source: {line}", file.display(), number + 1);
        }
    }
}

#[test]
fn a_machine_written_down_reads_back_as_itself() {
    for config in machines() {
        let mut record: Value = serde_json::to_value(&config).unwrap();
        assert_eq!(record.as_object_mut().unwrap().remove("scale"), Some("1".into()));
        assert_eq!(Description::<MachineConfig>::parse("x", &toml_of(&record)).unwrap().check().unwrap(), config);
    }
}

/// A record as TOML: values first, then sections.
fn toml_of(record: &Value) -> String {
    let object = record.as_object().unwrap();
    let (sections, values): (Vec<_>, Vec<_>) = object.iter().partition(|(_, value)| value.is_object());
    let mut text: String = values.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    for (name, section) in sections {
        text += &format!("[{name}]\n");
        text += &section.as_object().unwrap().iter().map(|(k, v)| format!("{k} = {v}\n")).collect::<String>();
    }
    text
}

#[test]
fn every_key_can_be_set_to_its_own_value_and_is_documented() {
    for config in machines() {
        let record = serde_json::to_value(&config).unwrap();
        let mut again = machine(&config.name).unwrap();
        let there = |section: &str| section.is_empty() || record.get(section).is_some();
        for (section, keys) in MachineConfig::sections().into_iter().filter(|(section, _)| there(section)) {
            for key in keys.iter().filter(|key| !matches!(key.name, "name" | "description")) {
                assert!(key.doc.len() > 3 && key.expected.len() > 3, "{section}.{} is not documented", key.name);
                let (path, value) = match section {
                    "" => (key.name.to_owned(), &record[key.name]),
                    _ => (format!("{section}.{}", key.name), &record[section][key.name]),
                };
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                again.set(&path, &text).unwrap();
            }
        }
        assert_eq!(again.check().unwrap(), config);
    }
}

/// `small / large`, divided by the scale: 1 if the ratio is kept exactly.
fn kept(small: u64, large: u64, scale: MachineScale) -> f64 {
    let wanted = large as f64 * scale.numerator() as f64 / scale.denominator() as f64;
    small as f64 / wanted
}

/// Half a `grain` relative to `whole`: the possible error from rounding to whole sets.
fn half(grain: u64, whole: u64) -> f64 {
    grain as f64 / 2.0 / whole as f64 * 1.02
}

#[test]
fn every_machine_keeps_its_ratios_at_every_allowed_scale() {
    for whole in machines() {
        for scale in whole.allowed_scales() {
            let small = whole.scaled(scale).unwrap();
            let near_one = |what: &str, ratio: f64, slack: f64| {
                let name = &whole.name;
                assert!((ratio - 1.0).abs() <= slack, "{name} at {scale}: {what} keeps {ratio:.4} of its share");
            };
            assert_eq!(small.scale, scale);
            near_one("SMs", kept(small.topology.sms() as u64, whole.topology.sms() as u64, scale), 0.0);
            let set = u64::from(small.l2.slices) * u64::from(small.l2.ways) * small.line.bytes();
            near_one("L2", kept(small.l2.bytes, whole.l2.bytes, scale), half(set, small.l2.bytes));
            let l3 = |m: &MachineConfig| m.memory_cache.bytes.0;
            if l3(&whole) > 0 {
                let set = u64::from(small.memory_cache.ways) * small.line.bytes();
                assert!(l3(&small).is_multiple_of(set), "{} at {scale}: {} bytes of L3", whole.name, l3(&small));
                near_one("L3", kept(l3(&small), l3(&whole), scale), half(set, l3(&small)));
            }
            let entries = |m: &MachineConfig| u64::from(m.directory.entries);
            let slack = half(small.directory.ways.into(), entries(&small));
            near_one("directory", kept(entries(&small), entries(&whole), scale), slack);
            let mshrs = |m: &MachineConfig| u64::from(m.l2.mshrs) * u64::from(m.l2.slices);
            near_one("L2 MSHRs", kept(mshrs(&small), mshrs(&whole), scale), 0.05);
            let l2_rate = |m: &MachineConfig| m.l2.rate.0 * u64::from(m.l2.slices);
            near_one("L2 rate", kept(l2_rate(&small), l2_rate(&whole), scale), 1e-6);
            near_one("DRAM rate", kept(small.dram.rate.0, whole.dram.rate.0, scale), 1e-6);
            near_one("DRAM capacity", kept(small.dram.bytes, whole.dram.bytes, scale), 0.01);
            near_one("GPU link", kept(small.gpu_link.rate.0, whole.gpu_link.rate.0, scale), 1e-6);
            near_one("posted stores", kept(small.l2.posted_stores.into(), whole.l2.posted_stores.into(), scale), 0.05);
            assert_eq!(small.module_link.rate.is_infinite(), whole.module_link.rate.is_infinite());
            let page = kept(small.page_bytes, whole.page_bytes, scale);
            let at_least = small.page_bytes == small.region_bytes();
            assert!(page > 0.5 && (page <= 1.0 || at_least), "{} at {scale}: pages keep {page}", whole.name);
        }
    }
}

#[test]
fn chiplets_share_the_l3_and_the_memory_that_all_have_together() {
    for machine in machines().into_iter().filter(|machine| machine.name.starts_with("chiplet-")) {
        let modules = machine.topology.modules() as u64;
        assert_eq!(machine.name, format!("chiplet-{modules}"));
        let (l3, memory) = (machine.memory_cache.bytes.0, &machine.dram);
        for (what, each, all) in
            [("L3", l3, 16_u64 << 20), ("memory", memory.bytes, 16 << 30), ("rate", memory.rate.0, 1_024_000_000_000)]
        {
            let share = (each * modules) as f64 / all as f64;
            assert!((share - 1.0).abs() < 1e-3, "{}: {share} of the {what}", machine.name);
        }
        let whole = tombolo_machine::machine(&format!("monolithic-{modules}")).and_then(|one| one.check()).unwrap();
        assert_eq!(whole.topology.sms(), machine.topology.sms());
        assert_eq!(
            (whole.l2.bytes, u64::from(whole.l2.slices)),
            (machine.l2.bytes * modules, u64::from(machine.l2.slices) * modules)
        );
    }
}

#[test]
fn sm_resources_and_latencies_do_not_scale() {
    let whole = machine("hmg-4x4").unwrap().check().unwrap();
    let small = whole.scaled(MachineScale::new(1, 16).unwrap()).unwrap();
    assert_eq!((small.sm, small.l1, small.crossbar), (whole.sm, whole.l1, whole.crossbar));
    assert_eq!(
        (small.tlb, small.messages, small.energy, small.line),
        (whole.tlb, whole.messages, whole.energy, whole.line)
    );
    assert_eq!(small.gpu_link.latency, whole.gpu_link.latency);
    assert_eq!(small.l2.hit_latency, whole.l2.hit_latency);
    assert_eq!(small.host.launch_latency, whole.host.launch_latency);
    assert_eq!((small.topology.gpus, small.topology.modules_per_gpu), (4, 4));
}

#[test]
fn a_sixteenth_of_hmgs_machine_has_the_expected_sizes() {
    let small = machine("hmg-4x4").unwrap().check().unwrap().scaled("1/16".parse().unwrap()).unwrap();
    assert_eq!(small.topology.sms_per_module, 2);
    assert_eq!((small.l2.bytes, small.l2.slices, small.l2.mshrs), (192 << 10, 1, 192));
    assert_eq!(small.l2.rate, Rate(83_200_000_000), "one whole slice of sixteen");
    assert_eq!((small.dram.channels, small.dram.rate), (1, Rate(15_625_000_000)), "half a channel: one at half rate");
    assert_eq!(small.gpu_link.rate, Rate(6_250_000_000));
    assert_eq!((small.directory.entries, small.page_bytes), (768, 128 << 10));
}

#[test]
fn below_one_slice_the_rate_and_the_mshrs_shrink() {
    let small = machine("hmg-4x4").unwrap().check().unwrap().scaled("1/32".parse().unwrap()).unwrap();
    assert_eq!((small.l2.slices, small.l2.mshrs, small.l2.rate), (1, 96, Rate(41_600_000_000)));
    let cycles = small.l2.request_cycles;
    assert_eq!((cycles.numerator, cycles.denominator), (2, 1), "half a slice takes a request every other cycle");
}

#[test]
fn table_ii_of_hmg() {
    let m = machine("hmg-4x4").unwrap().check().unwrap();
    let (gpus, modules) = (u64::from(m.topology.gpus), u64::from(m.topology.modules_per_gpu));
    assert_eq!((gpus, modules, m.topology.sms()), (4, 4, 512));
    assert_eq!(m.topology.sms() as u64 / gpus, 128);
    assert_eq!((m.sm.clock.hz(), m.sm.warps), (1_300_000_000, 64));
    assert_eq!((m.page_bytes, m.line.bytes(), m.l1.bytes), (2 << 20, 128, 128 << 10));
    assert_eq!((m.l2.bytes * modules, m.l2.ways), (12 << 20, 16));
    assert_eq!((m.directory.entries, m.directory.lines_per_entry), (12 << 10, 4));
    let wide = machine("hmg-4x4-wide").unwrap().check().unwrap();
    for (machine, ways) in [(&m, 2), (&wide, 1)] {
        assert_eq!(machine.module_link.rate.0 * modules * ways, 2_048_000_000_000, "both ways, or each");
        assert_eq!(machine.gpu_link.rate.0 * ways, 200_000_000_000, "both ways, or each");
    }
    assert_eq!((m.dram.rate.0 * modules, m.dram.bytes * modules), (1_000_000_000_000, 32 << 30));
}

#[test]
fn hardware_cost_of_hmgs_directory() {
    let m = machine("hmg-4x4").unwrap().check().unwrap();
    assert_eq!(m.directory_reach_bytes(), 6 << 20, "12K x 4 x 128 B, section VI");
    assert_eq!((m.directory_sharers(), m.directory_bits_per_entry()), (6, 55), "section VII-C");
    assert_eq!(m.directory_storage_bytes(), 84 << 10, "84 KB, section VII-C");
    assert_eq!(format!("{:.1}", m.directory_storage_bytes() as f64 * 100.0 / m.l2.bytes as f64), "2.7");
}

#[test]
fn an_idle_v100_has_the_measured_load_latencies() {
    let m = machine("v100").unwrap().check().unwrap();
    let cycles = |time: Ps| (time.0 as f64 * m.sm.clock.hz() as f64 * 1e-12).round() as u64;
    let one_way = m.crossbar.latency.0;
    let l2_hit = Ps(m.l1.hit_latency.0 + 2 * one_way + m.l2.hit_latency.0);
    let dram = Ps(l2_hit.0 + m.dram.base_latency.0 + m.dram.activate.0 + m.dram.column.0);
    let walked = Ps(dram.0 + m.tlb.l2_latency.0 + m.tlb.walk_latency.0);
    assert_eq!((cycles(m.l1.hit_latency), cycles(l2_hit)), (28, 193), "Jia et al. 2018");
    assert_eq!((cycles(dram), cycles(walked)), (375, 1029), "Jia et al. 2018");
}

#[test]
fn a_load_from_idle_dram_takes_100_ns_beyond_the_l2_on_hmgs_machine() {
    let m = machine("hmg-4x4").unwrap().check().unwrap();
    assert_eq!(m.dram.base_latency + m.dram.activate + m.dram.column, Ps::from_ns(100));
}

#[test]
fn one_gpu_of_hmgs_machine_differs_in_nothing_else() {
    let four = machine("hmg-4x4").unwrap().check().unwrap();
    let mut one = machine("hmg-1x4").unwrap().check().unwrap();
    assert_eq!(one.topology.gpus, 1);
    one.topology.gpus = 4;
    (one.name, one.description) = (four.name.clone(), four.description.clone());
    assert_eq!(one, four);
}

#[test]
fn table_1_of_numa_gpu() {
    let m = machine("numa-4").unwrap().check().unwrap();
    assert_eq!((m.topology.gpus, m.topology.modules_per_gpu, m.topology.sms_per_module), (4, 1, 64));
    assert_eq!((m.sm.clock.hz(), m.sm.warps), (1_000_000_000, 64));
    assert_eq!((m.l1.bytes, m.l1.ways, m.line.bytes()), (128 << 10, 4, 128));
    assert_eq!((m.l2.bytes, m.l2.ways), (4 << 20, 16));
    assert_eq!((m.gpu_link.lanes, m.gpu_link.rate), (8, Rate(64_000_000_000)), "8 lanes of 8 GB/s each way");
    assert_eq!(m.gpu_link.latency + m.module_link.latency + m.module_link.latency, Ps::from_ns(128));
    assert_eq!(m.dram.rate, Rate(768_000_000_000));
    assert_eq!(m.dram.base_latency + m.dram.activate + m.dram.column, Ps::from_ns(100));
}

#[test]
fn numa_gpus_with_other_numbers_of_sockets_differ_in_nothing_else() {
    let four = machine("numa-4").unwrap().check().unwrap();
    for (name, gpus) in [("numa-1", 1), ("numa-2", 2), ("numa-8", 8)] {
        let mut other = machine(name).unwrap().check().unwrap();
        assert_eq!(other.topology.gpus, gpus);
        other.topology.gpus = 4;
        (other.name, other.description) = (four.name.clone(), four.description.clone());
        assert_eq!(other, four, "{name}");
    }
}

#[test]
fn table_1_of_gps_and_the_links_of_its_figures() {
    let one = machine("gps-1").unwrap().check().unwrap();
    assert_eq!((one.topology.gpus, one.topology.modules_per_gpu, one.topology.sms_per_module), (1, 1, 80));
    assert_eq!((one.line.bytes(), one.l2.bytes, one.dram.bytes, one.page_bytes), (128, 6 << 20, 16 << 30, 64 << 10));
    assert_eq!((one.sm.warp_width, one.sm.threads), (32, 2048));
    assert!(u64::from(one.tlb.l2_entries) * one.page_bytes >= one.dram.bytes, "the TLB covers the memory");
    let per_line = |m: &MachineConfig| (m.messages.header_bytes.0 + m.line.bytes()) as f64;
    for (name, gpus, rate, efficiency) in [
        ("gps-4-pcie3", 4, 15_750_000_000, 128.0 / 152.0),
        ("gps-4-pcie4", 4, 31_500_000_000, 128.0 / 152.0),
        ("gps-4-pcie5", 4, 63_000_000_000, 128.0 / 152.0),
        ("gps-4-pcie6", 4, 128_000_000_000, 128.0 / 152.0),
        ("gps-4-nvlink", 4, 150_000_000_000, 128.0 / 144.0),
        ("gps-16-pcie6", 16, 128_000_000_000, 128.0 / 152.0),
        ("gps-16-pcie6-tree", 16, 128_000_000_000, 128.0 / 152.0),
    ] {
        let many = machine(name).unwrap().check().unwrap();
        assert_eq!((many.topology.gpus, many.gpu_link.rate), (gpus, Rate(rate)), "{name}");
        assert!((many.line.bytes() as f64 / per_line(&many) - efficiency).abs() < 1e-12, "{name}");
        // Apart from the links, a single GPU in this machine equals the baseline.
        let mut alone = many.clone();
        alone.topology.gpus = 1;
        (alone.name, alone.description) = (one.name.clone(), one.description.clone());
        let links = one.clone();
        (alone.gpu_link, alone.messages, alone.fabric) = (links.gpu_link, links.messages, links.fabric);
        assert_eq!(alone, one, "{name}");
    }
}

#[test]
fn table_iii_of_umh() {
    let m = machine("umh-4-pcie").unwrap().check().unwrap();
    assert_eq!((m.topology.gpus, m.topology.modules_per_gpu, m.topology.sms_per_module), (4, 1, 16));
    assert_eq!((m.sm.clock.hz(), m.sm.warp_width, m.sm.warps, m.sm.sub_cores), (800_000_000, 64, 40, 4));
    assert_eq!((m.l1.bytes, m.l2.bytes, m.l2.slices, m.line.bytes()), (16 << 10, 4 * (128 << 10), 4, 64));
    assert_eq!((m.dram.rate, m.dram.bytes, m.dram.channels), (Rate(4 * 32 * 1_200_000_000), 4 << 30, 4));
    let (host, stack) = (m.coherent_host().unwrap(), m.stack.as_ref().unwrap());
    assert_eq!((host.memory.rate, host.directory.controllers), (Rate(38_400_000_000), 2));
    assert_eq!((host.llc.bytes, host.cpu.outstanding, stack.block_bytes), (2 << 20, 10, 4096));
    assert_eq!(stack.capacity(m.dram.bytes) / m.stacks_per_gpu(), 1 << 30, "a stack");
    assert!(u64::from(m.tlb.l2_entries) * m.page_bytes >= host.memory.bytes, "translation is free");
    let nvlink = machine("umh-4-nvlink").unwrap().check().unwrap();
    assert_eq!((m.gpu_link.rate, m.fabric.shape), (Rate(16_000_000_000), FabricShape::Shared));
    assert_eq!((nvlink.gpu_link.rate, nvlink.fabric.shape), (Rate(80_000_000_000), FabricShape::Pairs));
}

#[test]
fn directory_costs_of_umhs_machine_match_the_paper() {
    let m = machine("umh-4-nvlink").unwrap().check().unwrap();
    let (stack, host, llc) = (m.stack_directory_cost(), m.host_directory_cost(false), m.llc_directory_cost());
    assert_eq!((stack.unwrap().bits, stack.unwrap().bytes()), (35 + 64, 3_244_032), "section 5: 3.09 MiB");
    assert_eq!((host.unwrap().bits, host.unwrap().bytes()), (12, 3 << 20), "section 5.2");
    assert_eq!(llc.unwrap().bytes(), 7 << 10, "section 5.3");
    let mut lines = machine("umh-1-nvlink").unwrap();
    lines.set("stack.block_bytes", "64B").unwrap();
    let cost = lines.check().unwrap().stack_directory_cost().unwrap();
    assert_eq!((cost.tag_bits, cost.bits, cost.bytes()), (32, 36, 72 << 20), "section 5");
    for (gpus, bits) in [("umh-1-nvlink", 2 + 2), ("umh-2-nvlink", 3 + 4)] {
        let fewer = machine(gpus).unwrap().check().unwrap();
        assert_eq!(fewer.host_directory_cost(false).unwrap().bits, bits, "{gpus}");
    }
}

#[test]
fn umhs_machines_with_fewer_gpus_differ_in_nothing_else() {
    for link in ["pcie", "nvlink"] {
        let four = machine(&format!("umh-4-{link}")).unwrap().check().unwrap();
        for gpus in [1, 2] {
            let name = format!("umh-{gpus}-{link}");
            let mut fewer = machine(&name).unwrap().check().unwrap();
            assert_eq!((fewer.topology.gpus, &fewer.name), (gpus, &name));
            fewer.topology.gpus = 4;
            (fewer.name, fewer.description) = (four.name.clone(), four.description.clone());
            assert_eq!(fewer, four, "{name}");
        }
    }
}

#[test]
fn hosts_of_todays_machines_have_their_published_rates() {
    for (name, link, memory) in [("dgx-h100", 63, 614_400_000_000), ("gh200", 450, 512_000_000_000)] {
        let m = machine(name).unwrap().check().unwrap();
        let host = m.coherent_host().unwrap();
        assert_eq!((host.link.through, host.link.rate), (HostPath::Own, Rate(link * 1_000_000_000)), "{name}");
        assert_eq!((host.memory.rate, m.stack.is_none()), (Rate(memory), true), "{name}");
    }
    let apu = machine("mi300a").unwrap().check().unwrap();
    assert!(apu.coherent_host().is_none(), "its CPUs use the GPU's memory");
}

#[test]
fn machines_of_today_have_their_published_totals() {
    // GPUs, modules and SMs of a GPU, gigabytes and GB/s of its memory, and GB/s of a link each way.
    let published = [
        ("dgx-h200", (8, 1, 132), (141, 4800), 450),
        ("dgx-b200", (8, 1, 148), (180, 8000), 900),
        ("gb200-nvl72", (72, 1, 148), (186, 8000), 900),
        ("mi300x-8", (8, 8, 304), (192, 3712), 48),
        ("mi350x-8", (8, 8, 256), (288, 5608), 76),
    ];
    for (name, (gpus, modules, sms), (gigabytes, rate), link) in published {
        let m = machine(name).and_then(|machine| machine.check()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let topology = &m.topology;
        let modules_of_gpu = u64::from(topology.modules_per_gpu);
        let found_sms = modules_of_gpu * u64::from(topology.sms_per_module);
        assert_eq!((topology.gpus, modules_of_gpu, found_sms), (gpus, modules, sms), "{name}");
        let per_gpu = |of_module: u64| of_module * modules_of_gpu / 1_000_000_000;
        assert_eq!(((m.dram.bytes * modules_of_gpu) >> 30, per_gpu(m.dram.rate.0)), (gigabytes, rate), "{name}");
        assert_eq!(m.gpu_link.rate.0 / 1_000_000_000, link, "{name}");
    }
}

#[test]
fn a_hypothetical_gpu_has_all_resources_of_its_sockets() {
    let socket = machine("numa-1").unwrap().check().unwrap();
    for factor in [2_u16, 4, 8] {
        let large = machine(&format!("numa-hypothetical-{factor}")).unwrap().check().unwrap();
        let mut wanted = socket.clone();
        let (times, wide) = (u32::from(factor), u64::from(factor));
        wanted.topology.sms_per_module *= factor;
        (wanted.l2.bytes, wanted.l2.slices) = (wanted.l2.bytes * wide, wanted.l2.slices * factor);
        (wanted.l2.merges, wanted.l2.posted_stores) = (wanted.l2.merges * times, wanted.l2.posted_stores * times);
        wanted.directory.entries *= times;
        (wanted.dram.bytes, wanted.dram.rate) = (wanted.dram.bytes * wide, Rate(wanted.dram.rate.0 * wide));
        wanted.dram.channels *= factor;
        (wanted.tlb.l2_entries, wanted.tlb.walkers) = (wanted.tlb.l2_entries * times, wanted.tlb.walkers * times);
        wanted.host.dispatch_interval.0 /= wide;
        (wanted.name, wanted.description) = (large.name.clone(), large.description.clone());
        assert_eq!(large, wanted);
    }
}

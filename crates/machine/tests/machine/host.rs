//! Sections for a host and for stacks, which a machine may leave out, and the storage cost of their directories.

use tombolo_machine::coherent_host::HostPath;
use tombolo_machine::{ConfigError, Description, Fraction, MachineConfig, machine};
use tombolo_types::{Bytes, Rate};

/// UMH's numbers, applied to another machine's GPUs.
const GPUS: &str = "base = \"numa-4\"\nline = \"64B\"\n\
    [l1]\nsector_bytes = \"64B\"\n\
    [l2]\nbytes = \"512KB\"\nslices = 4\n\
    [dram]\nbytes = \"4GB\"\n";
const CPU: &str = "[cpu]\nclock = \"2.4GHz\"\nissue_cycles = 1\n";
const LLC: &str = "[llc]\nbytes = \"2MB\"\nways = 16\nhit_latency = \"10ns\"\nrate = \"64GB/s\"\n";
const MEMORY: &str = "[host_memory]\nbytes = \"16GB\"\nrate = \"38.4GB/s\"\nchannels = 2\nbanks = 16\nrow_bytes = \"8KB\"\n\
    burst_bytes = \"64B\"\ncolumn = \"14ns\"\nactivate = \"14ns\"\nprecharge = \"14ns\"\nrow_active = \"32ns\"\n\
    base_latency = \"30ns\"\nwrite_queue = 64\n";
const DIRECTORY: &str = "[host_directory]\ncontrollers = 2\nlookup_latency = \"0.5ns\"\n";
const LINK: &str = "[host_link]\nthrough = \"fabric\"\n";
const STACK: &str = "[stack]\nlookup_latency = \"2ns\"\n";

fn of(parts: &[&str]) -> Result<MachineConfig, ConfigError> {
    described(parts).check()
}

fn described(parts: &[&str]) -> Description<MachineConfig> {
    Description::parse("mine.toml", &format!("{GPUS}{}", parts.concat())).unwrap()
}

/// The whole machine, with settings.
fn with(settings: &[(&str, &str)]) -> Result<MachineConfig, ConfigError> {
    let mut whole = described(&[CPU, LLC, MEMORY, DIRECTORY, LINK, STACK]);
    settings.iter().for_each(|(path, value)| whole.set(path, value).unwrap());
    whole.check()
}

fn refused(settings: &[(&str, &str)]) -> String {
    with(settings).unwrap_err().to_string()
}

#[test]
fn a_host_exists_if_its_five_sections_exist() {
    let whole = with(&[]).unwrap();
    let host = whole.coherent_host().unwrap();
    assert_eq!((host.cpu.outstanding, host.llc.directory_blocks, host.directory.controllers), (10, 512, 2));
    assert_eq!((host.memory.rate, host.link.through), (Rate(38_400_000_000), HostPath::Fabric));
    let stack = whole.stack.as_ref().unwrap();
    assert_eq!((stack.block_bytes, stack.ways, stack.interleave(), stack.mask_bytes), (4096, 1, 4096, 4));
    assert!(of(&[]).unwrap().coherent_host().is_none());
    let without_stacks = of(&[CPU, LLC, MEMORY, DIRECTORY, LINK]).unwrap();
    assert!(without_stacks.coherent_host().is_some() && without_stacks.stack.is_none());
}

#[test]
fn sections_of_a_host_come_together() {
    let all = [CPU, LLC, MEMORY, DIRECTORY, LINK];
    for (index, name) in ["cpu", "llc", "host_memory", "host_directory", "host_link"].iter().enumerate() {
        let others: Vec<&str> = (0..5).filter(|other| *other != index).map(|other| all[other]).collect();
        let error = of(&others).unwrap_err().to_string();
        assert!(error.contains(&format!("{name} = (absent)")) && error.contains(&format!("no {name}")), "{error}");
    }
    let error = of(&[STACK]).unwrap_err().to_string();
    assert!(error.contains("there is stack, and no cpu, llc, host_memory, host_directory, host_link"), "{error}");
}

#[test]
fn a_setting_of_an_absent_section_says_which_sections_a_host_takes() {
    let mut without = machine("hmg-4x4").unwrap();
    let error = without.set("host_memory.rate", "1GB/s").unwrap_err().to_string();
    assert!(
        error.starts_with("setting host_memory.rate=1GB/s: host_memory.rate: this machine has no section host_memory")
    );
    assert!(error.ends_with("cpu, llc, host_memory, host_directory, host_link"), "{error}");
    let error = without.set("host_memory.speed", "1GB/s").unwrap_err().to_string();
    assert!(error.contains("section host_memory of a machine has host_memory.bytes"), "{error}");
    let faster = with(&[("host_memory.rate", "76.8GB/s"), ("stack.block_bytes", "1KB")]).unwrap();
    assert_eq!(faster.host_memory.unwrap().rate, Rate(76_800_000_000));
    assert_eq!(faster.stack.unwrap().interleave(), 1024);
}

#[test]
fn an_absent_section_is_in_no_record() {
    let record = |machine: &MachineConfig| serde_json::to_value(machine).unwrap().as_object().unwrap().len();
    assert_eq!(record(&with(&[]).unwrap()), record(&of(&[]).unwrap()) + 6);
    let resolved = |description: &Description<MachineConfig>| {
        let values = description.resolved().unwrap();
        values.iter().filter(|value| ["cpu", "stack", "host_link"].contains(&value.section)).count()
    };
    assert_eq!(resolved(&described(&[])), 0);
    assert_eq!(resolved(&described(&[CPU, LLC, MEMORY, DIRECTORY, LINK, STACK])), 4 + 5 + 8);
}

#[test]
fn conflicting_values_are_refused_with_the_reason() {
    for (path, value, reason) in [
        ("stack.block_bytes", "32", "from 64 to 16384 bytes"),
        ("stack.block_bytes", "32KB", "from 64 to 16384 bytes"),
        ("stack.block_bytes", "3000", "from 64 to 16384 bytes"),
        ("stack.mask_bytes", "1", "masks have 32 bits a line, so that a bit stands for 2 bytes"),
        ("stack.mask_bytes", "8", "expected 2 or 4"),
        ("stack.interleave_bytes", "32", "a line has 64 bytes"),
        ("stack.interleave_bytes", "96", "a power of two"),
        ("stack.ways", "64", "at most 32"),
        ("stack.bytes", "5GB", "dram.bytes"),
        ("stack.bytes", "4097", "multiple of 16384 bytes (4 stacks × 1 ways × 4096-byte blocks)"),
        ("llc.bytes", "2000", "a multiple of 1024"),
        ("llc.directory_blocks", "500", "a multiple of the 16 ways"),
        ("host_memory.row_bytes", "32", "at least the line of 64 bytes"),
        ("host_memory.bytes", "100", "whole pages"),
        ("host_directory.controllers", "33", "at most 32"),
        ("host_directory.outstanding", "65536", "at most 65535"),
        ("host_directory.outstanding", "1", "at least 3"),
        ("host_link.request_bytes", "32", "a line of 64 bytes at least"),
        ("cpu.outstanding", "65", "at most 64"),
        ("host_link.through", "own", "take time"),
        ("gpu_link.latency", "0ns", "takes time"),
    ] {
        let error = refused(&[(path, value)]);
        assert!(error.starts_with(&format!("setting {path}={value}: ")) && error.contains(reason), "{error}");
    }
    let error = refused(&[("page_bytes", "1KB")]);
    assert!(error.contains("a block lies in one page, which has 1024 bytes"), "{error}");
    let error = refused(&[("fabric.shape", "tree"), ("fabric.gpus_per_leaf", "2")]);
    assert!(error.contains("links of their \"own\" to a host"), "{error}");
    with(&[("host_link.through", "own"), ("host_link.latency", "400ns"), ("fabric.shape", "pairs")]).unwrap();
    with(&[("fabric.shape", "shared"), ("stack.mask_bytes", "2"), ("stack.row_policy", "open")]).unwrap();
    let alone = [("topology.gpus", "1"), ("gpu_link.latency", "0ns")];
    assert!(refused(&alone).contains("takes time"), "one GPU reaches its host through the fabric");
    let coarse = refused(&[("line", "256B"), ("l1.sector_bytes", "64B")]);
    assert!(coarse.contains("stacks take lines of at most 128"), "{coarse}");
}

#[test]
fn the_share_of_a_host_shrinks_with_its_machine_and_blocks_do_not() {
    let whole = with(&[("stack.bytes", "1GB")]).unwrap();
    let small = whole.scaled("1/16".parse().unwrap()).unwrap();
    let host = small.coherent_host().unwrap();
    assert_eq!((host.memory.rate, host.memory.bytes, host.memory.channels), (Rate(2_400_000_000), 1 << 30, 1));
    assert_eq!((host.llc.bytes, host.llc.rate, host.llc.directory_blocks), (128 << 10, Rate(4_000_000_000), 32));
    assert_eq!((host.cpu.outstanding, host.cpu.issue_cycles), (1, Fraction::new(16, 1).unwrap()));
    assert_eq!((host.cpu.clock, host.directory.controllers), (whole.cpu.as_ref().unwrap().clock, 2));
    let stack = small.stack.as_ref().unwrap();
    assert_eq!((stack.bytes, stack.block_bytes), (Bytes(64 << 20), 4096));
    assert_eq!(small.page_bytes, 4096, "a page holds a block");
    for scale in whole.allowed_scales() {
        whole.scaled(scale).unwrap();
    }
    let all = with(&[]).unwrap().scaled("1/64".parse().unwrap()).unwrap();
    assert_eq!(all.stack.unwrap().capacity(all.dram.bytes), 64 << 20);
}

#[test]
fn a_directory_of_lines_takes_36_bits_an_entry_and_72_mib_a_stack() {
    let lines = with(&[("stack.block_bytes", "64B"), ("stack.bytes", "4GB")]).unwrap();
    let cost = lines.stack_directory_cost().unwrap();
    assert_eq!((cost.entries, cost.tag_bits, cost.bits), (16 << 20, 32, 36), "UMH, section 5");
    assert_eq!(cost.bytes(), 72 << 20);
}

#[test]
fn a_directory_of_blocks_takes_99_bits_an_entry_and_3_09_mib_a_stack() {
    let cost = with(&[]).unwrap().stack_directory_cost().unwrap();
    assert_eq!((cost.entries, cost.tag_bits, cost.bits), (256 << 10, 32, 35 + 64), "UMH, section 5");
    assert_eq!((cost.bytes(), format!("{:.2}", cost.bytes() as f64 / f64::from(1 << 20))), (3_244_032, "3.09".into()));
}

#[test]
fn a_mask_takes_an_eighth_of_memory_at_a_byte_and_a_32nd_at_four() {
    let mut stack = with(&[]).unwrap().stack.unwrap();
    assert_eq!(stack.mask_share(), Fraction::new(1, 32), "UMH, section 4.1.2: 3.125 %");
    stack.mask_bytes = 1;
    assert_eq!(stack.mask_share(), Fraction::new(1, 8), "UMH, section 4.1.2: 12.5 %");
}

#[test]
fn a_directory_of_the_host_takes_12_bits_a_block_and_13_with_the_cpu() {
    let whole = with(&[]).unwrap();
    let [without, with] = [false, true].map(|cpu| whole.host_directory_cost(cpu).unwrap());
    assert_eq!((without.bits, with.bits), (4 + 8, 4 + 9), "UMH, section 5.2, and what it leaves out");
    assert_eq!((without.entries, without.bytes()), (2 << 20, 3 << 20), "half of 16 GB in blocks of 4 KB");
}

#[test]
fn the_directory_of_the_last_level_cache_takes_7_kib() {
    let cost = with(&[]).unwrap().llc_directory_cost().unwrap();
    assert_eq!((cost.entries, cost.bits, cost.bytes()), (512, 112, 7 << 10), "UMH, section 5.3");
}

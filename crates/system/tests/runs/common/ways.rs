//! Sharing policies between GPUs, and runs under each policy that are checked against the memory model.

use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::{RunSpec, run_checked};
use tombolo_types::stream::Program;

/// A design with settings for it.
pub type SharingPolicy = (&'static str, &'static [&'static str]);

/// Designs that promise the memory model, or at least visibility at kernel boundaries.
pub const SHARING_POLICIES: [SharingPolicy; 10] = [
    ("unified-memory", &[]),
    ("unified-memory", &["placement.read_mostly=true"]),
    ("unified-memory", &["placement.pinning=true"]),
    ("unified-memory-hints", &[]),
    ("memcpy", &[]),
    ("memcpy", &["placement.overlap=true"]),
    ("memcpy-needed", &[]),
    ("memcpy-shared", &[]),
    ("memcpy-shared", &["placement.copied=shared-lines"]),
    ("gps", &[]),
];

/// A machine with `gpus` GPUs, two SMs each, and small pages.
pub fn machine(gpus: u32) -> Arc<MachineConfig> {
    let mut machine = tombolo_machine::machine("gps-4-pcie3").expect("a preset");
    let gpus = format!("topology.gpus={gpus}");
    let settings = [&gpus[..], "topology.sms_per_module=2", "page_bytes=4KB"];
    tombolo_design::apply(&settings, &mut machine, &mut []).expect("settings a machine has");
    Arc::new(machine.check().expect("a machine that fits"))
}

/// Runs `program` on `gpus` GPUs under a sharing policy, and checks that no load returns a forbidden value.
pub fn assert_right(name: &str, program: &Arc<dyn Program>, gpus: u8, (way, settings): SharingPolicy) {
    let mut design = tombolo_design::design(way).expect("a preset");
    settings.iter().for_each(|setting| {
        let (key, value) = setting.split_once('=').expect("a key and a value");
        design.set(key, value).expect("a key");
    });
    let design = design.check().expect("a design that fits");
    let (machine, program) = (machine(gpus.into()), Arc::clone(program));
    let ran = run_checked(&RunSpec { machine, design, program, pages: None, threads: 2 }, None);
    let check = ran.unwrap_or_else(|error| panic!("{name} under {way}: {error}")).check;
    let check = check.expect("a checked run says what it found");
    assert!(check.loads > 100, "{name} under {way} on {gpus}: {} loads", check.loads);
    assert_eq!(check.first, [], "{name} under {way} {settings:?} on {gpus} GPUs");
}

//! Sharing between modules is counted in the streams, in closed form.

use crate::common::{design, machine};
use tombolo_system::directed::{CtaBuilder, DirectedProgram};
use tombolo_system::place;
use tombolo_system::sharing::{SharingRecord, inter_gpu_sharing};

/// A CTA per module; only the CTAs in `active` read `lines`.
fn reads(active: std::ops::Range<usize>, lines: std::ops::Range<u64>) -> Vec<CtaBuilder> {
    let read =
        |warp: &mut tombolo_system::directed::WarpBuilder<'_>| lines.clone().for_each(|line| _ = warp.read([line]));
    (0..16)
        .map(|module| if active.contains(&module) { CtaBuilder::new().warp(read) } else { CtaBuilder::new() })
        .collect()
}

fn shared(kernels: Vec<Vec<CtaBuilder>>) -> SharingRecord {
    let (machine, design, program) = (machine(&[]), design("hmg", &[]), DirectedProgram::new(kernels));
    let pages = place(&machine, &design, &*program).expect("a whole program");
    inter_gpu_sharing(&machine, &design, &*program, &pages).expect("a whole program")
}

#[test]
fn loads_of_lines_that_two_modules_of_a_gpu_load_are_shared() {
    let record = shared(vec![reads(0..1, 0..64), reads(4..6, 0..48), reads(8..9, 0..64)]);
    let expected = SharingRecord { loads: 64 + 2 * 48 + 64, inter_gpu_loads: 2 * 48 + 64, inter_gpu_loads_shared: 96 };
    assert_eq!(record, expected);
}

#[test]
fn a_store_of_another_module_makes_a_load_shared_and_is_none() {
    let mut writer = vec![CtaBuilder::new(); 16];
    writer[5] = CtaBuilder::new().warp(|warp| _ = warp.write([0]));
    let record = shared(vec![reads(0..1, 0..2), reads(4..5, 0..2), writer]);
    assert_eq!(record, SharingRecord { loads: 4, inter_gpu_loads: 2, inter_gpu_loads_shared: 1 });
}

#[test]
fn loads_inside_a_gpu_are_not_between_gpus() {
    let record = shared(vec![reads(0..1, 0..8), reads(1..4, 0..8)]);
    assert_eq!(record, SharingRecord { loads: 32, inter_gpu_loads: 0, inter_gpu_loads_shared: 0 });
}

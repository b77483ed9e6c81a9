//! Labels that omit an access lead to detected stale reads.

use crate::cases::{Kind, module};
use crate::directed::{DirectedProgram, DirectedUse, R, RW};
use crate::kernel::Kernel;
use crate::search::{Order, perform};
use crate::truth::Violation;
use tombolo_protocol::elision::{Elision, KernelId};

const MODULES: u8 = 4;
const LINES: u64 = 4;

/// A kernel's actual accesses, and its labels.
struct Launch {
    truth: Vec<(u64, Vec<DirectedUse>)>,
    labels: Vec<(u64, Vec<DirectedUse>)>,
    asserted: bool,
}

/// Runs these launches. Returns the outcome and the number of operations performed.
fn outcome(program: &mut DirectedProgram, launches: &[Launch]) -> (Result<(), Violation>, usize) {
    let mut operations = 0;
    for Launch { truth, labels, asserted } in launches {
        let mut kernel = Kernel { accesses: program.kernel(truth).accesses, ..program.kernel(labels) };
        kernel.labels.iter_mut().flatten().for_each(|label| label.asserted = *asserted);
        let boundary = kernel.with_packet(KernelId(0), |packet| program.elision.launch(packet, &mut |_| {}));
        operations += boundary.flushes() + boundary.invalidations();
        program.world.perform(&program.machine, &boundary, |_| Ok(())).expect("nothing is accessed");
        let performed = perform(&program.machine, &mut program.world, &kernel.accesses, Order::LoadsFirst);
        if performed.is_err() {
            return (performed, operations);
        }
        program.elision.finish(KernelId(0), &mut |_| {});
    }
    (Ok(()), operations)
}

/// A stencil with this halo between two arrays, labelled as if its halo had the size `labelled`.
fn stencil(program: &DirectedProgram, halo: u64, labelled: u64, asserted: bool) -> Vec<Launch> {
    let step = |step: u64| {
        let arrays = |halo| {
            let reads = program.each(R, |at| program.around(at, halo));
            vec![(step % 2, reads), (1 - step % 2, program.each(RW, |at| program.own(at)))]
        };
        Launch { truth: arrays(halo), labels: arrays(labelled), asserted }
    };
    (0..4).map(step).collect()
}

fn directed() -> DirectedProgram {
    DirectedProgram::new(Kind::Chiplet, MODULES, 2, LINES)
}

#[test]
fn equal_parts_without_halos_read_old_values() {
    let mut program = directed();
    let launches = stencil(&program, 1, 0, false);
    let (outcome, operations) = outcome(&mut program, &launches);
    assert!(matches!(outcome, Err(Violation::Stale(..))), "{outcome:?}");
    assert_eq!(operations, 0);
}

#[test]
fn equal_parts_are_sound_where_nothing_else_is_accessed() {
    let mut program = directed();
    let launches = stencil(&program, 0, 0, false);
    assert_eq!(outcome(&mut program, &launches), (Ok(()), 0));
}

#[test]
fn an_assertion_is_believed_right_or_wrong() {
    let mut program = directed();
    let launches = stencil(&program, 1, 1, true);
    let (wrong, operations) = outcome(&mut program, &launches);
    assert!(matches!(wrong, Err(Violation::Stale(..))), "{wrong:?}");
    assert_eq!(operations, 0);
    let mut program = directed();
    let launches = stencil(&program, 1, 1, false);
    assert_eq!(outcome(&mut program, &launches).0, Ok(()), "the same without it");
}

/// A handover: module 0 writes an array, then module 1 reads it.
fn handed_over(program: &DirectedProgram) -> [Launch; 2] {
    let kernel = |at, mode| vec![(0, vec![(module(at), mode, program.own(0))])];
    [(0, RW), (1, R)].map(|(at, mode)| Launch { truth: kernel(at, mode), labels: kernel(at, mode), asserted: false })
}

#[test]
fn a_label_that_lacks_an_array_reads_old_values() {
    for lacks in [0, 1] {
        let mut program = directed();
        let mut launches = handed_over(&program);
        launches[lacks].labels.clear();
        let (outcome, _) = outcome(&mut program, &launches);
        assert!(matches!(outcome, Err(Violation::Stale(..))), "{outcome:?} where launch {lacks} lacks it");
    }
    let mut program = directed();
    let launches = handed_over(&program);
    assert_eq!(outcome(&mut program, &launches), (Ok(()), 1));
}

#[test]
fn an_array_that_is_written_and_labelled_as_read_goes_stale() {
    let mut program = directed();
    let mut launches = handed_over(&program);
    launches[0].labels[0].1[0].1 = R;
    let (outcome, _) = outcome(&mut program, &launches);
    assert!(matches!(outcome, Err(Violation::Stale(..))), "{outcome:?}");
}

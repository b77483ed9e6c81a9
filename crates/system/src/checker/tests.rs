use super::*;
use std::ops::Range;
use std::sync::Arc;
use tombolo_types::stream::Command;
use tombolo_types::{GpuId, ModuleId, SmId};

const LINE: Line = Line(4);
const FLAG: Flag = Flag(1);

/// A run with two CTAs, each with one warp.
struct Run(Arc<Checker>);

impl Run {
    fn new() -> Run {
        Run::of(&[Command::launch(0, 0), Command::launch(0, 0)])
    }

    /// A run with these launches; the first launch has started.
    fn of(commands: &[Command]) -> Run {
        let run = Run(Arc::new(Checker::new(LineSize::B128, LaunchOrder::of(commands), &[])));
        run.launch(0);
        run
    }

    fn launch(&self, launch: u32) {
        self.beside(launch, KernelSlot(0), 0..2);
    }

    /// A kernel starts with a CTA on each of these warp slots.
    fn beside(&self, launch: u32, kernel: KernelSlot, slots: Range<u8>) {
        self.0.kernel(launch, kernel);
        slots.for_each(|slot| self.0.cta(warp(slot), 1 << slot, kernel));
    }

    fn store(&self, slot: u8, flag: Flag) -> Versions {
        ValueProbe::store(&self.0, warp(slot), LINE, Mask::ALL, flag)
    }

    fn returns(&self, slot: u8, line: Line, data: Versions) {
        self.0.loaded(Ps(1), warp(slot), 0, line, Mask::ALL, data);
    }

    fn load(&self, slot: u8, line: Line, data: Versions) {
        ValueProbe::load(&self.0, warp(slot), 0);
        self.returns(slot, line, data);
    }

    fn kinds(&self) -> Vec<ViolationKind> {
        self.0.checked().first.iter().map(|violation| violation.kind).collect()
    }
}

fn warp(slot: u8) -> WarpSlot {
    WarpSlot { gpu: GpuId(0), module: ModuleId(0), sm: SmId(0), slot }
}

#[test]
fn a_load_does_not_return_a_later_store_of_its_own_warp() {
    let run = Run::new();
    ValueProbe::load(&run.0, warp(0), 0);
    let later = run.store(0, Flag::NONE);
    run.returns(0, LINE, later);
    assert_eq!(run.kinds(), [ViolationKind::Future]);
}

#[test]
fn a_load_does_not_return_a_store_that_synchronisation_puts_after_it() {
    let run = Run::new();
    ValueProbe::load(&run.0, warp(0), 0);
    run.0.barrier(warp(0), 0b11);
    let later = run.store(1, Flag::NONE);
    run.returns(0, LINE, later);
    assert_eq!(run.kinds(), [ViolationKind::Future]);
}

#[test]
fn a_load_that_races_with_a_store_may_return_it() {
    let run = Run::new();
    ValueProbe::load(&run.0, warp(0), 0);
    let racing = run.store(1, Flag::NONE);
    run.returns(0, LINE, racing);
    assert_eq!(run.kinds(), []);
}

#[test]
fn a_load_returns_stores_that_were_issued_and_went_to_its_bytes() {
    let run = Run::new();
    run.load(0, LINE, Versions::of(9));
    let other = run.store(1, Flag::NONE);
    run.load(0, Line(5), other);
    let mut kinds = run.kinds();
    kinds.sort_unstable();
    assert_eq!(kinds, [ViolationKind::Future, ViolationKind::Misplaced]);
}

#[test]
fn a_poll_that_passes_returns_its_flags_store_or_a_later_one() {
    for (older, expected) in [(true, vec![ViolationKind::EarlyFlag]), (false, vec![])] {
        let run = Run::new();
        let before = run.store(1, Flag::NONE);
        let flagged = run.store(1, FLAG);
        run.load(0, LINE, if older { before } else { flagged });
        run.0.flag_found(warp(0), 0, FLAG);
        assert_eq!(run.kinds(), expected);
    }
}

#[test]
fn loads_of_later_kernels_agree_which_of_racing_stores_was_the_last() {
    let run = Run::new();
    let [one, other] = [0, 1].map(|slot| run.store(slot, Flag::NONE));
    run.launch(1);
    run.load(0, LINE, one);
    run.load(1, LINE, one);
    assert_eq!(run.kinds(), []);
    run.load(1, LINE, other);
    assert_eq!(run.kinds(), [ViolationKind::Old]);
}

#[test]
fn stores_of_a_kernel_beside_are_never_held_against_a_load() {
    let run = Run::of(&[Command::launch(0, 0), Command::launch(0, 1)]);
    let before = run.store(0, Flag::NONE);
    run.beside(1, KernelSlot(1), 2..4);
    let beside = run.store(2, Flag::NONE);
    for data in [before, beside] {
        [0, 2].into_iter().for_each(|slot| run.load(slot, LINE, data));
    }
    assert_eq!(run.kinds(), []);
    run.load(2, LINE, Versions::default());
    assert_eq!(run.kinds(), [ViolationKind::Old], "its own store is");
}

#[test]
fn a_kernel_is_held_to_what_its_own_stream_has_stored() {
    let run = Run::of(&[Command::launch(0, 0), Command::launch(0, 1), Command::launch(0, 0)]);
    let first = run.store(0, Flag::NONE);
    run.beside(1, KernelSlot(1), 4..6);
    run.beside(2, KernelSlot(2), 2..4);
    run.load(2, LINE, first);
    assert_eq!(run.kinds(), []);
    run.load(4, LINE, Versions::default());
    assert_eq!(run.kinds(), [], "the other stream's kernel may not have seen it");
    run.load(3, LINE, Versions::default());
    assert_eq!(run.kinds(), [ViolationKind::Old]);
}

#[test]
fn behind_a_barrier_all_streams_have_stored() {
    let run = Run::of(&[Command::launch(0, 0), Command::launch(0, 1), Command::Barrier, Command::launch(0, 1)]);
    let first = run.store(0, Flag::NONE);
    run.beside(1, KernelSlot(1), 2..4);
    run.beside(2, KernelSlot(0), 0..2);
    run.load(0, LINE, first);
    assert_eq!(run.kinds(), []);
    run.load(1, LINE, Versions::default());
    assert_eq!(run.kinds(), [ViolationKind::Old]);
}

/// Lets the host read a line between two kernels.
fn host_loads(run: &Run, number: u32, data: Versions) {
    assert!(run.0.host_reads(number));
    run.0.host_read(Ps(1), number, LINE, Mask::ALL, data);
}

#[test]
fn the_host_reads_what_kernels_have_stored() {
    let run = Run::new();
    let [first, second] = [run.store(0, Flag::NONE), run.store(0, Flag::NONE)];
    host_loads(&run, 0, second);
    assert_eq!(run.kinds(), []);
    host_loads(&run, 1, first);
    assert_eq!(run.kinds(), [ViolationKind::Old]);
    assert_eq!(run.0.checked().first[0].by, "the host");
}

#[test]
fn a_kernel_reads_what_the_host_wrote_before_it() {
    let commands = [Command::launch(0, 0), Command::Host { phase: 0 }, Command::launch(0, 0)];
    let run = Run::of(&commands);
    let stored = run.store(0, Flag::NONE);
    let written = run.0.host_writes(LINE, Mask::ALL).expect("it is checked");
    host_loads(&run, 0, written);
    run.launch(1);
    run.load(0, LINE, written);
    assert_eq!(run.kinds(), []);
    run.load(1, LINE, stored);
    assert_eq!(run.kinds(), [ViolationKind::Old]);
}

#[test]
fn the_host_reads_what_it_has_written_itself() {
    let run = Run::new();
    let stored = run.store(0, Flag::NONE);
    let early = run.0.host_reads(7);
    let written = run.0.host_writes(LINE, Mask::ALL).expect("it is checked");
    // A read that began before the host's write may return the kernel's store.
    run.0.host_read(Ps(1), 7, LINE, Mask::ALL, stored);
    host_loads(&run, 8, written);
    assert_eq!((early, run.kinds()), (true, vec![]));
    host_loads(&run, 9, stored);
    assert_eq!(run.kinds(), [ViolationKind::Old]);
}

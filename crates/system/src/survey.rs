//! A single walk over a program's streams, without simulation, shared by any number of readers.
//!
//! The walk is in canonical order. Launches come in program order, regardless of stream. Within a launch, modules come
//! in turn, each with its CTAs in execution order. Results are therefore equal for every design with the same grid cut,
//! for every thread count and for every run.
//!
//! Readers: first touch ([`crate::placement`]), shared loads ([`crate::sharing`]), array uses ([`crate::uses`]), array
//! sizes ([`crate::arrays`]), data movement between memories ([`crate::movement`]).

use tombolo_design::scheduling::{CtaDistribution, MachineShape};
use tombolo_types::stream::{Access, Accesses, Command, CtaStream, Op, Program, StreamError};
use tombolo_types::{LaunchDevices, Line, ModuleId, StopFlag};

/// A launch visited by the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurveyedLaunch {
    /// Index among the program's launches.
    pub index: u32,
    /// Index of the kernel.
    pub kernel: u32,
    /// Target modules.
    pub on: LaunchDevices,
}

impl SurveyedLaunch {
    /// Key that determines each module's work: launches with equal keys do equal work, so that a reader may skip
    /// repeated launches.
    pub fn kind(&self) -> (u32, LaunchDevices) {
        (self.kernel, self.on)
    }
}

/// A consumer of program streams, fed by [`survey`] together with further readers.
pub trait Reader {
    /// Starts a launch, before any of its CTAs is visited. Returns true if the reader needs the launch's CTAs: many
    /// kernels are launched repeatedly.
    fn launch(&mut self, launch: SurveyedLaunch) -> bool;

    /// Visits CTA number `rank` among the launch's CTAs on `module`.
    fn cta(&mut self, module: ModuleId, rank: u32, stream: &CtaStream);
}

/// Walks over `program` on a machine with this shape, with grids divided among modules by `cut`. Each CTA is decoded
/// once for all readers.
///
/// # Errors
/// The recording is damaged, or the calling thread's [`StopFlag`] was set.
pub fn survey(
    program: &dyn Program,
    cut: CtaDistribution,
    shape: MachineShape,
    readers: &mut [&mut dyn Reader],
) -> Result<(), StreamError> {
    let (mut stream, stop) = (CtaStream::default(), StopFlag::current());
    let launches = program.commands().iter().filter_map(|command| match *command {
        Command::Launch { kernel, on, .. } => Some((kernel, on)),
        Command::Copy { .. } | Command::Host { .. } | Command::Barrier => None,
    });
    for (index, (kernel, on)) in (0..).zip(launches) {
        let launch = SurveyedLaunch { index, kernel, on };
        let mut shown: Vec<&mut &mut dyn Reader> =
            readers.iter_mut().filter_map(|reader| reader.launch(launch).then_some(reader)).collect();
        if shown.is_empty() {
            continue;
        }
        let info = &program.kernels()[kernel as usize];
        for module in (0..shape.modules()).map(ModuleId) {
            let Some(share) = cut.share(info, on, module, shape) else { continue };
            for (rank, cta) in (0..).zip(share.iter()) {
                if stop.is_set() {
                    return Err(StreamError { message: "stopped".to_owned() });
                }
                program.cta(kernel, cta, &mut stream)?;
                shown.iter_mut().for_each(|reader| reader.cta(module, rank, &stream));
            }
        }
    }
    Ok(())
}

/// Access type for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// A load, or one poll.
    Load,
    /// A store.
    Store,
    /// An atomic read-modify-write.
    Atomic,
}

/// Each line transaction in a CTA, warp by warp, with its access type.
pub fn touches(stream: &CtaStream) -> impl Iterator<Item = (Touch, Line)> + '_ {
    accesses(stream).map(|(touch, access)| (touch, access.line))
}

/// Like [`touches`], with the touched bytes.
pub fn accesses(stream: &CtaStream) -> impl Iterator<Item = (Touch, Access)> + '_ {
    let each = |(touch, accesses): (Touch, Accesses)| {
        stream.accesses[accesses.range()].iter().map(move |&access| (touch, access))
    };
    stream.ops.iter().filter_map(touch).flat_map(each)
}

/// Access type and line transactions for an instruction that accesses memory; `None` for all remaining instructions.
pub fn touch(op: &Op) -> Option<(Touch, Accesses)> {
    match *op {
        Op::Load { accesses, .. } => Some((Touch::Load, accesses)),
        Op::Store { accesses, .. } => Some((Touch::Store, accesses)),
        Op::Atomic { accesses, .. } => Some((Touch::Atomic, accesses)),
        Op::WaitUntil { access, .. } => Some((Touch::Load, Accesses { start: access, len: 1 })),
        Op::Compute { .. } | Op::Fence { .. } | Op::Shared { .. } | Op::Barrier => None,
        Op::Use { .. } | Op::Signal { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directed::{CtaBuilder, DirectedProgram};
    use tombolo_types::Order;
    use tombolo_types::stream::AtomicResult;

    /// Records the first line in each visited CTA, for launches of the given kernels.
    struct FirstLines(&'static [u32], Vec<(u8, u32, u64)>);

    impl Reader for FirstLines {
        fn launch(&mut self, launch: SurveyedLaunch) -> bool {
            self.0.contains(&launch.kernel)
        }

        fn cta(&mut self, module: ModuleId, rank: u32, stream: &CtaStream) {
            let (_, line) = touches(stream).next().expect("it touches a line");
            self.1.push((module.0, rank, line.0));
        }
    }

    fn reading(line: u64) -> CtaBuilder {
        CtaBuilder::new().warp(|w| _ = w.read([line]))
    }

    #[test]
    fn every_reader_sees_the_launches_it_asks_for_in_canonical_order() {
        let program = DirectedProgram::new(vec![(0..3).map(reading).collect(), (10..12).map(reading).collect()]);
        let (mut all, mut second) = (FirstLines(&[0, 1], Vec::new()), FirstLines(&[1], Vec::new()));
        survey(
            &*program,
            CtaDistribution::Interleaved { chunk: 1 },
            MachineShape::one_gpu(2),
            &mut [&mut all, &mut second],
        )
        .expect("it decodes");
        assert_eq!(all.1, [(0, 0, 0), (0, 1, 2), (1, 0, 1), (0, 0, 10), (1, 0, 11)]);
        assert_eq!(second.1, [(0, 0, 10), (1, 0, 11)]);
    }

    #[test]
    fn a_poll_is_a_load_and_an_atomic_is_itself() {
        let cta = CtaBuilder::new().warp(|w| {
            w.wait_until(3, 0, Order::WEAK).write([4]).atomic([5], Order::WEAK, AtomicResult::Discarded).barrier();
        });
        let program = DirectedProgram::new(vec![vec![cta]]);
        let mut stream = CtaStream::default();
        program.cta(0, 0, &mut stream).expect("it decodes");
        let expected = [(Touch::Load, Line(3)), (Touch::Store, Line(4)), (Touch::Atomic, Line(5))];
        assert_eq!(touches(&stream).collect::<Vec<_>>(), expected);
    }
}

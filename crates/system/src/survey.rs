//! One walk over a program's streams, without simulating, for as many readers as want to know something of them.
//!
//! In canonical order: launches as the program issues them, of whatever stream; of a launch the modules that it runs on in
//! turn; of a module its CTAs in the order in which it runs them. So what readers find is the same for every design that cuts grids alike, every thread
//! count and every run.
//!
//! Readers: first touch ([`crate::placement`]), loads in common ([`crate::sharing`]), arrays used ([`crate::uses`]) and
//! how much of them ([`crate::arrays`]), what moves between memories ([`crate::movement`]).

use tombolo_design::scheduling::{CtaCut, Shape};
use tombolo_types::stream::{Access, Accesses, Command, CtaStream, Op, Program, StreamError};
use tombolo_types::{Line, ModuleId, On};

/// A launch of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Its place among the launches of the program.
    pub index: u32,
    /// Which kernel.
    pub kernel: u32,
    /// Where.
    pub on: On,
}

impl Launch {
    /// What decides which module does what: launched again, it is the same.
    pub fn kind(&self) -> (u32, On) {
        (self.kernel, self.on)
    }
}

/// Who wants to know something of a program's streams.
pub trait Reader {
    /// A launch begins. Returns whether to show its CTAs: many kernels are launched again and again.
    fn launch(&mut self, launch: Launch) -> bool;

    /// CTA number `rank` of those of the launch that `module` runs.
    fn cta(&mut self, module: ModuleId, rank: u32, stream: &CtaStream);
}

/// Walks over `program` on a machine of this shape whose modules share grids as `cut` says. Each CTA is decoded once for
/// all readers.
///
/// # Errors
/// The recording is damaged.
pub fn survey(
    program: &dyn Program,
    cut: CtaCut,
    shape: Shape,
    readers: &mut [&mut dyn Reader],
) -> Result<(), StreamError> {
    let mut stream = CtaStream::default();
    let launches = program.commands().iter().filter_map(|command| match *command {
        Command::Launch { kernel, on, .. } => Some((kernel, on)),
        Command::Copy { .. } | Command::Host { .. } | Command::Barrier => None,
    });
    for (index, (kernel, on)) in (0..).zip(launches) {
        let launch = Launch { index, kernel, on };
        let mut shown: Vec<&mut &mut dyn Reader> =
            readers.iter_mut().filter_map(|reader| reader.launch(launch).then_some(reader)).collect();
        if shown.is_empty() {
            continue;
        }
        let info = &program.kernels()[kernel as usize];
        for module in (0..shape.modules()).map(ModuleId) {
            let Some(share) = cut.share(info, on, module, shape) else { continue };
            for (rank, cta) in (0..).zip(share.iter()) {
                program.cta(kernel, cta, &mut stream)?;
                shown.iter_mut().for_each(|reader| reader.cta(module, rank, &stream));
            }
        }
    }
    Ok(())
}

/// What an instruction does to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// It loads from it, once or by polling.
    Load,
    /// It stores to it.
    Store,
    /// It reads, modifies and writes it.
    Atomic,
}

/// Each line transaction of a CTA, warp after warp.
pub fn touches(stream: &CtaStream) -> impl Iterator<Item = (Touch, Line)> + '_ {
    accesses(stream).map(|(touch, access)| (touch, access.line))
}

/// The same, with the bytes that are touched.
pub fn accesses(stream: &CtaStream) -> impl Iterator<Item = (Touch, Access)> + '_ {
    let each = |(touch, accesses): (Touch, Accesses)| {
        stream.accesses[accesses.range()].iter().map(move |&access| (touch, access))
    };
    stream.ops.iter().filter_map(touch).flat_map(each)
}

/// Line transactions of an instruction that touches memory.
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
    use crate::directed::{Cta, Directed};
    use tombolo_types::Order;
    use tombolo_types::stream::AtomicResult;

    /// Notes the first line of each CTA it is shown, of launches of these kernels.
    struct Notes(&'static [u32], Vec<(u8, u32, u64)>);

    impl Reader for Notes {
        fn launch(&mut self, launch: Launch) -> bool {
            self.0.contains(&launch.kernel)
        }

        fn cta(&mut self, module: ModuleId, rank: u32, stream: &CtaStream) {
            let (_, line) = touches(stream).next().expect("it touches a line");
            self.1.push((module.0, rank, line.0));
        }
    }

    fn reading(line: u64) -> Cta {
        Cta::new().warp(|w| _ = w.read([line]))
    }

    #[test]
    fn every_reader_sees_the_launches_it_asks_for_in_canonical_order() {
        let program = Directed::new(vec![(0..3).map(reading).collect(), (10..12).map(reading).collect()]);
        let (mut all, mut second) = (Notes(&[0, 1], Vec::new()), Notes(&[1], Vec::new()));
        survey(&*program, CtaCut::Interleaved { chunk: 1 }, Shape::one_gpu(2), &mut [&mut all, &mut second])
            .expect("it decodes");
        assert_eq!(all.1, [(0, 0, 0), (0, 1, 2), (1, 0, 1), (0, 0, 10), (1, 0, 11)]);
        assert_eq!(second.1, [(0, 0, 10), (1, 0, 11)]);
    }

    #[test]
    fn a_poll_is_a_load_and_an_atomic_is_itself() {
        let cta = Cta::new().warp(|w| {
            w.wait_until(3, 0, Order::WEAK).write([4]).atomic([5], Order::WEAK, AtomicResult::Discarded).barrier();
        });
        let program = Directed::new(vec![vec![cta]]);
        let mut stream = CtaStream::default();
        program.cta(0, 0, &mut stream).expect("it decodes");
        let expected = [(Touch::Load, Line(3)), (Touch::Store, Line(4)), (Touch::Atomic, Line(5))];
        assert_eq!(touches(&stream).collect::<Vec<_>>(), expected);
    }
}

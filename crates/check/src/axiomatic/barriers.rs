//! Whether the barriers of a program can all open.

use super::ModelError;
use super::paths::{self, Step};
use crate::litmus::{Instruction, Program, Thread};

/// Whether, on every combination of paths, the threads of each CTA come to the same barriers in the same order in each
/// kernel, as far as each of them goes: one that has ended its kernel is not waited for. Paths that no values lead to
/// count too.
pub(crate) fn barriers_meet(program: &Program) -> Result<bool, ModelError> {
    let mut meet = true;
    paths::for_each(program, |paths| {
        let met: Vec<Vec<Instruction>> =
            program.threads.iter().zip(paths).map(|(thread, path)| meetings(thread, path)).collect();
        let threads = || program.threads.iter().zip(&met);
        meet &= threads().all(|(thread, one)| {
            threads().all(|(mate, other)| !mate.placement.shares_cta(thread.placement) || agree(one, other))
        });
        Ok(())
    })?;
    Ok(meet)
}

/// The barriers and kernel boundaries that a thread comes to on `path`.
fn meetings(thread: &Thread, path: &[Step]) -> Vec<Instruction> {
    let meets =
        |instruction: &Instruction| matches!(instruction, Instruction::Barrier { .. } | Instruction::KernelBoundary);
    path.iter().map(|step| thread.code[step.at]).filter(meets).collect()
}

/// Whether two threads with these barriers and kernel boundaries meet at the same barriers in each kernel until one of
/// them ends it.
fn agree(one: &[Instruction], other: &[Instruction]) -> bool {
    let is_boundary = |instruction: &Instruction| *instruction == Instruction::KernelBoundary;
    let mut kernels = one.split(is_boundary).zip(other.split(is_boundary));
    kernels.all(|(one, other)| one.iter().zip(other).all(|(one, other)| one == other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::litmus::parse;

    /// Of P0 and P1, in CTA 0 and `cta`.
    fn meet(cta: u32, rows: &str) -> bool {
        let text = format!("PTX test {{ x=0; }} P0@cta 0,gpu 0 | P1@cta {cta},gpu 0 ; {rows} exists x=0");
        barriers_meet(&parse("test", &text).unwrap().program).unwrap()
    }

    #[test]
    fn barriers_meet_within_a_cta_in_one_order() {
        assert!(meet(0, "bar.cta.sync 3 | bar.cta.sync 3 ; bar.cta.sync 2 | bar.cta.sync 2 ;"));
        assert!(!meet(0, "bar.cta.sync 3 | bar.cta.sync 2 ; bar.cta.sync 2 | bar.cta.sync 3 ;"));
        assert!(!meet(0, "bar.cta.sync 3 | bar.cta.sync 2 ;"));
        assert!(meet(1, "bar.cta.sync 3 | bar.cta.sync 2 ;"));
    }

    #[test]
    fn who_has_ended_its_kernel_is_not_waited_for() {
        assert!(meet(0, "bar.cta.sync 3 | bar.cta.sync 3 ; bar.cta.sync 2 | ;"));
        assert!(meet(0, "bar.cta.sync 3 | kernel.boundary ; kernel.boundary | bar.cta.sync 2 ;"));
        assert!(!meet(0, "kernel.boundary | kernel.boundary ; bar.cta.sync 3 | bar.cta.sync 2 ;"));
    }

    #[test]
    fn barriers_meet_only_if_they_do_on_every_path() {
        let skips = "ld.weak r0, x | bar.cta.sync 0 ; beq r0, 0, LC00 | ; bar.cta.sync 0 | ; LC00: | ;";
        assert!(meet(0, skips), "P0 may end before its barrier");
        assert!(!meet(0, &format!("{skips} bar.cta.sync 1 | ;")), "P0 may come to barrier 1 first");
    }
}

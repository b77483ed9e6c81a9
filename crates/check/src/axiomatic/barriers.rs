//! Decides if every barrier in a program can open.

use super::ModelError;
use super::paths::{self, PathStep};
use crate::litmus::{Instruction, Program, Thread};

/// True if, on every combination of paths, the threads of each CTA reach equal barriers in equal order within each
/// kernel. Sequences are compared up to the end of the shorter: a barrier does not wait for a thread that has ended the
/// kernel. Paths that no values can lead to are included.
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

/// The barriers and kernel boundaries that a thread reaches along `path`.
fn meetings(thread: &Thread, path: &[PathStep]) -> Vec<Instruction> {
    let meets =
        |instruction: &Instruction| matches!(instruction, Instruction::Barrier { .. } | Instruction::KernelBoundary);
    path.iter().map(|step| thread.code[step.at]).filter(meets).collect()
}

/// True if two threads with the given barriers and kernel boundaries meet at equal barriers in each kernel, until
/// either thread ends the kernel.
fn agree(one: &[Instruction], other: &[Instruction]) -> bool {
    let is_boundary = |instruction: &Instruction| *instruction == Instruction::KernelBoundary;
    let mut kernels = one.split(is_boundary).zip(other.split(is_boundary));
    kernels.all(|(one, other)| one.iter().zip(other).all(|(one, other)| one == other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::litmus::parse;

    /// Checks barriers for two threads: P0 in CTA 0 and P1 in CTA `cta`.
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

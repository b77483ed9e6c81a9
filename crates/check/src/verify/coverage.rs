//! Selection and order of the explored placements for a program.
//!
//! A program runs on the GPUs named in its text and, up to a total of four, an additional GPU with only homes. Each GPU
//! has two modules, or three if GPU homes matter and all placements can be listed. Smaller machines are covered
//! implicitly: their placements leave modules unused.

use super::case::Placements;
use crate::explore::{
    MAX_GPUS, PlacementParameters, ProgramLayout, Sharing, Start, drawn_layout, gpus_of, layouts, possible_layouts,
};
use crate::litmus::Program;
use crate::random::Dice;
use std::collections::BTreeSet;

/// Maximum number of CTAs in a program explored on GPUs with three modules. No core test has more. Source: assumed;
/// listing the placements for four takes longer than exploring a sample.
const MOST_CTAS: usize = 3;
/// GPUs in a machine with moving pages, if the program needs no more: two users of a page and a third for a further
/// location.
const GPUS_WITH_PAGES: u8 = 3;
/// Placements, before symmetry reduction, up to which all are listed. Beyond, [`DRAWN`] placements are drawn.
const LISTED: u64 = 200_000;
/// Placements drawn if there are too many to list.
const DRAWN: usize = 10_000;
/// Distance in listing order between neighbours in exploration order: a budget that ends early thus leaves a
/// representative sample.
const STRIDE: usize = 16;

/// A single exploration.
#[derive(Clone, Debug)]
pub(super) struct ExploredPlacement {
    pub(super) layout: ProgramLayout,
    pub(super) start: Start,
}

/// The explorations of a program under a design.
pub(super) struct Coverage {
    /// Explorations in execution order.
    pub(super) places: Vec<ExploredPlacement>,
    /// Set if the list contains every placement, or every requested placement.
    pub(super) whole: bool,
}

/// Design properties with an influence on the machines for verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MachineConstraints {
    /// Set if GPU homes matter.
    pub(super) gpu_homes: bool,
    /// Set if pages move: then each GPU has a single module.
    pub(super) pages_move: bool,
    /// Set if each GPU has its own copy of all memory.
    pub(super) copied: bool,
    /// Set if all memory belongs to the host: then each GPU is a single client, and GPUs without threads hold nothing.
    pub(super) host_memory: bool,
}

/// Selects the explorations for a program.
pub(super) fn coverage(program: &Program, placements: Placements, machines: MachineConstraints) -> Coverage {
    let shape = |sharing| shape(program, sharing, machines);
    let sharings = sharings(program, machines);
    match placements {
        Placements::All => all(program, sharings, shape),
        Placements::Drawn { count, seed } => {
            let mut dice = Dice::new(seed, 0);
            let drawn = (0..count).map(|_| {
                let sharing = sharings[dice.below(sharings.len())];
                drawn_layout(program, shape(sharing), &mut dice)
            });
            Coverage { places: both_starts(drawn), whole: true }
        }
    }
}

/// Machine shape. Two modules per GPU are the minimum for a home elsewhere on the GPU. If a writer, the GPU home and a
/// reader occupy three modules in a GPU, three are needed; a protocol without GPU homes shows the effect on two GPUs.
fn shape(program: &Program, sharing: Sharing, machines: MachineConstraints) -> PlacementParameters {
    let MachineConstraints { gpu_homes, pages_move, host_memory, .. } = machines;
    if host_memory {
        let gpus = gpus_of(program).max(1);
        return PlacementParameters { gpus, modules_per_gpu: 1, sharing, gpu_homes, shared_sms: true, host_memory };
    }
    let gpus = (gpus_of(program) + 1).min(MAX_GPUS);
    if pages_move {
        let gpus = gpus_of(program).max(gpus.min(GPUS_WITH_PAGES));
        return PlacementParameters { gpus, modules_per_gpu: 1, sharing, gpu_homes, shared_sms: true, host_memory };
    }
    let of = |modules_per_gpu| PlacementParameters {
        gpus,
        modules_per_gpu,
        sharing,
        gpu_homes,
        shared_sms: true,
        host_memory,
    };
    let ctas: BTreeSet<_> = program.threads.iter().map(|thread| thread.placement).collect();
    let three = gpu_homes && ctas.len() <= MOST_CTAS && possible_layouts(program, of(3)) <= LISTED;
    of(if three { 3 } else { 2 })
}

fn all(program: &Program, sharings: &[Sharing], shape: impl Fn(Sharing) -> PlacementParameters) -> Coverage {
    let (mut chosen, mut whole) = (Vec::new(), true);
    for &sharing in sharings {
        let shape = shape(sharing);
        if possible_layouts(program, shape) <= LISTED {
            chosen.extend(layouts(program, shape));
        } else {
            whole = false;
            let mut dice = Dice::new(DRAWN as u64, sharing as u64);
            chosen.extend((0..DRAWN).map(|_| drawn_layout(program, shape, &mut dice)));
        }
    }
    // The most revealing layouts come first; a stable sort keeps the layouts with equal sharing together.
    chosen.sort_by_key(|layout| std::cmp::Reverse(layout.modules_used()));
    let strided = (0..STRIDE).flat_map(|first| chosen.iter().skip(first).step_by(STRIDE).cloned());
    Coverage { places: both_starts(strided), whole }
}

/// Assignments of locations to lines and regions; a single location shares with none.
fn sharings(program: &Program, machines: MachineConstraints) -> &'static [Sharing] {
    if machines.host_memory && program.locations.len() > 1 {
        return &Sharing::OF_BLOCKS;
    }
    match (program.locations.len() > 1, machines.pages_move) {
        (true, false) => &Sharing::ALL,
        (true, true) if machines.copied => &Sharing::OF_COPIES,
        (true, true) => &Sharing::OF_PAGES,
        (false, _) => &[Sharing::Apart],
    }
}

fn both_starts(layouts: impl Iterator<Item = ProgramLayout>) -> Vec<ExploredPlacement> {
    let starts = |layout: ProgramLayout| {
        [Start::Cold, Start::Warm].map(|start| ExploredPlacement { layout: layout.clone(), start })
    };
    layouts.flat_map(starts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::Case;
    use std::collections::BTreeSet;

    const WITH_GPU_HOMES: MachineConstraints =
        MachineConstraints { gpu_homes: true, pages_move: false, copied: false, host_memory: false };

    fn program(places: &str, body: &str) -> Program {
        let text = format!("PTX test {{x=0; y=0;}} {places} ; {body} ; exists x=0");
        crate::litmus::parse("test", &text).unwrap().program
    }

    #[test]
    fn a_machine_has_a_gpu_without_threads_while_it_may() {
        let one = program("P0@cta 0,gpu 0 | P1@cta 1,gpu 0", "st.weak x,1 | st.weak y,1");
        let coverage = coverage(&one, Placements::All, WITH_GPU_HOMES);
        assert!(coverage.whole);
        assert!(coverage.places.iter().all(|place| place.layout.gpus == 2));
        assert!(coverage.places.iter().any(|place| place.layout.regions.iter().all(|homes| homes.system.0 >= 3)));
    }

    #[test]
    fn names_of_gpus_do_not_matter() {
        let body = "st.weak x,1 | st.weak x,2";
        let count = |places| coverage(&program(places, body), Placements::All, WITH_GPU_HOMES).places.len();
        assert_eq!(count("P0@cta 0,gpu 0 | P1@cta 0,gpu 1"), count("P0@cta 0,gpu 7 | P1@cta 0,gpu 200"));
    }

    #[test]
    fn every_core_test_has_each_placement_once() {
        for case in Case::core() {
            let Ok(judged) = case.judge() else { panic!("{} is judged", case.name) };
            let coverage = coverage(&judged.program, Placements::All, WITH_GPU_HOMES);
            let distinct: BTreeSet<_> =
                coverage.places.iter().map(|place| (&place.layout, place.start == Start::Warm)).collect();
            assert_eq!(distinct.len(), coverage.places.len(), "{}", case.name);
            assert!(coverage.whole, "{}", case.name);
        }
    }
}

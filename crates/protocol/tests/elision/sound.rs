//! Sound labels never go stale: all sequences of small kernels on three modules, under every reading.

use crate::kernel::{Kernel, Labelling, accesses, is_race_free};
use crate::search::{Scenario, search};
use crate::truth::{Access, Machine, Reading};
use tombolo_protocol::elision::{ChipletTable, HomeAware, Holds, Lines, Never, TableConfig, User, When};
use tombolo_types::{Line, ModuleId};

/// Three modules with these homes of lines of two grains.
pub fn machine(reading: Reading, homes: &[u8]) -> Machine {
    let homes = homes.iter().map(|&home| ModuleId(home)).collect();
    Machine { reading, modules: 3, homes, grains: 2, store_fetches: false, fault: None }
}

/// Structures of these many lines, one behind the other.
pub fn structures(lengths: &[u64]) -> Vec<Lines> {
    let mut next = 0;
    let one = |&length: &u64| {
        next += length;
        Lines::new(Line(next - length), Line(next))
    };
    lengths.iter().map(one).collect()
}

pub fn module(module: u8) -> User {
    User::Module(ModuleId(module))
}

/// What one module may do in a kernel: grains read, grains written.
pub type Part = (&'static [usize], &'static [usize]);

/// All kernels in which each module does one of these, and which have no race.
pub fn kernels(machine: &Machine, structures: &[Lines], parts: &[Part], labelling: Labelling) -> Vec<Kernel> {
    let of = |user: u8, (reads, writes): Part| {
        let mut all = accesses(module(user), reads.iter().copied(), false);
        all.extend(accesses(module(user), writes.iter().copied(), true));
        all
    };
    let mut kernels: Vec<Vec<Access>> = vec![Vec::new()];
    for user in 0..machine.modules {
        let longer = |kernel: &Vec<Access>| {
            let with = parts.iter().map(|&part| [kernel.as_slice(), &of(user, part)].concat());
            with.filter(|kernel| is_race_free(kernel)).collect::<Vec<_>>()
        };
        kernels = kernels.iter().flat_map(longer).collect();
    }
    kernels.retain(|kernel| !kernel.is_empty());
    kernels.into_iter().map(|accesses| Kernel::labelled(machine, structures, accesses, labelling)).collect()
}

/// One structure of two lines: parts of a line, a whole line, all, and a line written beside a halo.
pub const ONE_STRUCTURE: [Part; 10] = [
    (&[], &[]),
    (&[0], &[]),
    (&[], &[0]),
    (&[1], &[]),
    (&[], &[1]),
    (&[2, 3], &[]),
    (&[], &[2, 3]),
    (&[0, 1, 2, 3], &[]),
    (&[], &[0, 1, 2, 3]),
    (&[1, 2], &[3]),
];

#[test]
fn one_structure_is_never_stale() {
    let structures = structures(&[2]);
    let start = std::time::Instant::now();
    for reading in [Reading::HomeMemory, Reading::Cached] {
        let machine = machine(reading, &[0, 1]);
        let kernels = kernels(&machine, &structures, &ONE_STRUCTURE, Labelling::Exact);
        let scenario = Scenario { machine, kernels, streams: 1 };
        let found = search(&scenario, ChipletTable::new(TableConfig::default(), 3, None), 10_000_000);
        println!("{reading:?}: {} kernels, {} states, {:?}", scenario.kernels.len(), found.states, start.elapsed());
        assert!(found.trace.is_none(), "{:?}", found.trace);
    }
    let _ = (HomeAware::new(TableConfig::default(), 3, Holds::Own, None), Never::new(When::Launch, 3));
}

//! Kernels as performed by the reference machine, and labels derived from their accesses.

use crate::truth::{Access, Machine};
use tombolo_protocol::elision::{
    AccessMode, KernelId, Label, LineRange, LineSet, ModuleSet, Packet, StructureUse, User,
};
use tombolo_types::{Line, ModuleId};

/// The labels for a structure.
#[derive(Clone, Debug)]
pub(crate) struct OwnedLabel {
    pub(crate) structure: LineRange,
    pub(crate) homes: Vec<LineSet>,
    pub(crate) asserted: bool,
    pub(crate) uses: Vec<StructureUse>,
}

/// The derivation of labels from accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Labelling {
    /// The whole structure for each user that touches it, in a common mode: Listing 1.
    Modes,
    /// Each user's touched lines, as line sets, each in its own mode.
    Exact,
    /// Each user's touched lines, in a common mode.
    OneMode,
}

/// A kernel, or the host's actions between two kernels.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) accesses: Vec<Access>,
    /// The labels; `None` for a kernel without labels.
    pub(crate) labels: Option<Vec<OwnedLabel>>,
}

impl Kernel {
    /// Creates a kernel with truthful labels.
    pub(crate) fn labelled(
        machine: &Machine,
        structures: &[LineRange],
        accesses: Vec<Access>,
        labelling: Labelling,
    ) -> Kernel {
        let labels = structures.iter().filter_map(|&structure| label(machine, structure, &accesses, labelling));
        Kernel { labels: Some(labels.collect()), accesses }
    }

    /// The modules it runs on.
    pub(crate) fn on(&self) -> ModuleSet {
        self.accesses.iter().fold(ModuleSet::NONE, |on, access| match access.user {
            User::Module(module) => on.union(ModuleSet::only(module)),
            User::Host => on,
        })
    }

    /// Passes the packet for the kernel's launch to `then`.
    pub(crate) fn with_packet<T>(&self, kernel: KernelId, then: impl FnOnce(&Packet<'_>) -> T) -> T {
        let labels: Option<Vec<Label<'_>>> = self.labels.as_ref().map(|labels| labels.iter().map(of).collect());
        then(&Packet { kernel, modules: self.on(), labels: labels.as_deref() })
    }

    /// True if either kernel writes a grain that the other kernel accesses.
    pub(crate) fn conflicts(&self, other: &Kernel) -> bool {
        self.accesses.iter().any(|mine| other.accesses.iter().any(|theirs| conflict(mine, theirs)))
    }
}

fn conflict(one: &Access, other: &Access) -> bool {
    one.grain == other.grain && (one.write || other.write)
}

/// True if no grain written by a user is accessed by another user.
pub(crate) fn is_race_free(accesses: &[Access]) -> bool {
    accesses.iter().all(|one| accesses.iter().all(|other| one.user == other.user || !conflict(one, other)))
}

fn of(label: &OwnedLabel) -> Label<'_> {
    Label { structure: label.structure, homes: &label.homes, asserted: label.asserted, uses: &label.uses }
}

fn label(machine: &Machine, structure: LineRange, accesses: &[Access], labelling: Labelling) -> Option<OwnedLabel> {
    let inside = |access: &&Access| machine.lines(access.grain).overlaps(structure);
    let users: std::collections::BTreeSet<User> = accesses.iter().filter(inside).map(|access| access.user).collect();
    let written = accesses.iter().filter(inside).any(|access| access.write);
    let uses = users.iter().map(|&user| {
        let own = || accesses.iter().filter(inside).filter(move |access| access.user == user);
        let writes = own().any(|access| access.write);
        let mode = |writes: bool| if writes { AccessMode::ReadWrite } else { AccessMode::Read };
        let lines = || own().map(|access| machine.lines(access.grain)).collect();
        match labelling {
            Labelling::Modes => StructureUse { user, mode: mode(written), lines: structure.into() },
            Labelling::Exact => StructureUse { user, mode: mode(writes), lines: lines() },
            Labelling::OneMode => StructureUse { user, mode: mode(written), lines: lines() },
        }
    });
    let uses: Vec<StructureUse> = uses.collect();
    (!uses.is_empty()).then(|| OwnedLabel { structure, homes: homes(machine, structure), asserted: false, uses })
}

/// A structure's lines, grouped by their home module.
pub(crate) fn homes(machine: &Machine, structure: LineRange) -> Vec<LineSet> {
    let at = |module| {
        let lines = (structure.first.0..structure.end.0).filter(|&line| machine.homes[line as usize] == module);
        lines.map(|line| LineRange::new(Line(line), Line(line + 1))).collect()
    };
    (0..machine.modules).map(ModuleId).map(at).collect()
}

/// Accesses by `user` to these grains.
pub(crate) fn accesses(user: User, grains: impl IntoIterator<Item = usize>, write: bool) -> Vec<Access> {
    grains.into_iter().map(|grain| Access { user, grain, write }).collect()
}

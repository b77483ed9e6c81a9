//! Conversion from a launch's labels to its touches: line uses by user, with the L2s concerned.
//!
//! Structures beyond a kernel's limit in the table are combined first (CPElide, III-B, "Coarsening Data Structure
//! Labels"): neighbours in memory, contiguous structures first, then the closest pairs.
//!
//! If the modules in a GPU hold lines for each other, a use by any module counts as a use by all of them.

use super::table::{LineHolders, TableConfig};
use super::{AccessMode, BrokenElision, Label, LineRange, LineSet, ModuleSet, StructureUse, User};
use tombolo_types::ModuleId;

/// A single user's access to a single structure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Touch {
    /// The structure; for combined structures, the hull.
    pub(super) structure: LineRange,
    pub(super) user: User,
    pub(super) mode: AccessMode,
    pub(super) lines: LineSet,
    /// The modules whose L2 may hold these lines, or outdated copies.
    pub(super) concerns: ModuleSet,
    /// Set when the program asserts that the structure needs no operations.
    pub(super) asserted: bool,
}

impl Touch {
    /// True for a use by `module` that may leave lines in its L2.
    pub(super) fn is_local(&self, module: ModuleId) -> bool {
        self.user == User::Module(module) && self.concerns.contains(module)
    }

    /// True for a use by another user whose lines the L2 in `module` may hold.
    pub(super) fn is_remote(&self, module: ModuleId) -> bool {
        self.user != User::Module(module) && self.concerns.contains(module)
    }
}

/// Structures within a kernel that share a table row.
struct StructureGroup<'a> {
    structure: LineRange,
    parts: Vec<&'a Label<'a>>,
}

/// The touches for a launch with these labels.
pub(super) fn touches(
    labels: &[Label<'_>],
    config: TableConfig,
    reach: LineHolders,
    modules: u8,
    broken: Option<BrokenElision>,
) -> Vec<Touch> {
    let mut touches = Vec::new();
    for group in combined(labels, usize::from(config.structures)) {
        for used in group.uses(modules, broken).into_iter().flat_map(|used| shared(used, config.sharing)) {
            let used = StructureUse { lines: used.lines.limited(usize::from(config.ranges)), ..used };
            match reach {
                LineHolders::Every => touches.push(group.touch(&used, ModuleSet::first(modules))),
                LineHolders::Home => touches.extend(group.at_homes(&used, modules)),
            }
        }
    }
    touches
}

/// Replicates the use for every module in the user's GPU, which has `sharing` modules.
fn shared(used: StructureUse, sharing: u8) -> Vec<StructureUse> {
    match used.user {
        User::Module(module) if sharing > 1 => {
            let first = module.0 / sharing * sharing;
            (first..first + sharing)
                .map(|module| StructureUse { user: User::Module(ModuleId(module)), ..used.clone() })
                .collect()
        }
        User::Module(_) | User::Host => vec![used],
    }
}

/// The structures in ascending order, as at most `most` groups of neighbours.
fn combined<'a>(labels: &'a [Label<'a>], most: usize) -> Vec<StructureGroup<'a>> {
    let mut groups: Vec<StructureGroup<'a>> =
        labels.iter().map(|label| StructureGroup { structure: label.structure, parts: vec![label] }).collect();
    groups.sort_by_key(|group| group.structure);
    let gap = |groups: &[StructureGroup<'_>], at: usize| groups[at - 1].structure.gap(groups[at].structure);
    while groups.len() > most.max(1) {
        let closest = (1..groups.len()).min_by_key(|&at| (gap(&groups, at), at)).expect("there are two groups");
        let mut later = groups.remove(closest);
        let group = &mut groups[closest - 1];
        group.structure = group.structure.hull(later.structure);
        group.parts.append(&mut later.parts);
    }
    groups
}

impl<'a> StructureGroup<'a> {
    /// A use for each user: the union of its lines in all parts, and the more conservative mode.
    fn uses(&self, modules: u8, broken: Option<BrokenElision>) -> Vec<StructureUse> {
        let users = (0..modules).map(|module| User::Module(ModuleId(module))).chain([User::Host]);
        let users = users.filter(|&user| user != User::Host || broken != Some(BrokenElision::HostIgnored));
        users.filter_map(|user| self.used_by(user, broken)).collect()
    }

    /// The use by a single user; `None` if the user uses no part.
    fn used_by(&self, user: User, broken: Option<BrokenElision>) -> Option<StructureUse> {
        let counted = match broken {
            Some(BrokenElision::CoarseningDropsUsers) => 1,
            Some(_) | None => self.parts.len(),
        };
        let uses = self.parts[..counted].iter().flat_map(|part| part.uses);
        let mut uses = uses.filter(|used| used.user == user).map(|used| rounded(used, broken));
        let mut all = uses.next()?;
        for used in uses {
            all.lines.add(&used.lines);
            all.mode = match broken {
                Some(BrokenElision::CoarseningWeakensMode) => all.mode.min(used.mode),
                Some(_) | None => all.mode.max(used.mode),
            };
        }
        (!all.lines.is_empty()).then_some(all)
    }

    /// Builds the touch for a use, with the modules concerned.
    fn touch(&self, used: &StructureUse, concerns: ModuleSet) -> Touch {
        Touch {
            structure: self.structure,
            user: used.user,
            mode: used.mode,
            lines: used.lines.clone(),
            concerns,
            asserted: self.parts.iter().all(|part| part.asserted),
        }
    }

    /// A touch for each home of the used lines, with only this home concerned.
    fn at_homes(&self, used: &StructureUse, modules: u8) -> impl Iterator<Item = Touch> {
        (0..modules).filter_map(|home| {
            let homed = self.parts.iter().map(|part| {
                let at = part.homes.get(usize::from(home));
                at.unwrap_or_else(|| {
                    panic!("a label of {:?} does not say what is homed at module{home}", part.structure)
                })
            });
            let lines: LineSet = homed.flat_map(|homed| homed.intersection(&used.lines).ranges().to_vec()).collect();
            let touch = self.touch(&StructureUse { lines, ..used.clone() }, ModuleSet::only(ModuleId(home)));
            (!touch.lines.is_empty()).then_some(touch)
        })
    }
}

/// The use as labelled: unchanged, unless the rule that rounds range ends outward is broken.
fn rounded(used: &StructureUse, broken: Option<BrokenElision>) -> StructureUse {
    let shortened = |range: &LineRange| {
        let is_one = range.end.0 - range.first.0 == 1;
        if is_one { *range } else { LineRange::new(range.first, tombolo_types::Line(range.end.0 - 1)) }
    };
    let lines = match broken {
        Some(BrokenElision::EndsRoundedDown) => used.lines.ranges().iter().map(shortened).collect(),
        Some(_) | None => used.lines.clone(),
    };
    StructureUse { lines, ..*used }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::Line;

    fn lines(first: u64, end: u64) -> LineRange {
        LineRange::new(Line(first), Line(end))
    }

    fn used(user: u8, mode: AccessMode, range: LineRange) -> StructureUse {
        StructureUse { user: User::Module(ModuleId(user)), mode, lines: range.into() }
    }

    fn label(structure: LineRange, uses: &[StructureUse]) -> Label<'_> {
        Label { structure, homes: &[], asserted: false, uses }
    }

    fn structures(labels: &[Label<'_>], most: usize) -> Vec<LineRange> {
        combined(labels, most).iter().map(|group| group.structure).collect()
    }

    #[test]
    fn contiguous_structures_are_combined_before_close_ones() {
        let labels = [(20, 30), (0, 10), (11, 20), (40, 50)].map(|(first, end)| label(lines(first, end), &[]));
        assert_eq!(structures(&labels, 4), [lines(0, 10), lines(11, 20), lines(20, 30), lines(40, 50)]);
        assert_eq!(structures(&labels, 3), [lines(0, 10), lines(11, 30), lines(40, 50)]);
        assert_eq!(structures(&labels, 2), [lines(0, 30), lines(40, 50)]);
        assert_eq!(structures(&labels, 1), [lines(0, 50)]);
    }

    #[test]
    fn a_combined_row_has_all_users_and_the_more_conservative_mode() {
        let first = [used(0, AccessMode::Read, lines(0, 4))];
        let second = [used(0, AccessMode::ReadWrite, lines(12, 13)), used(1, AccessMode::Read, lines(14, 16))];
        let labels = [label(lines(0, 10), &first), label(lines(12, 20), &second)];
        let config = TableConfig { structures: 1, ..TableConfig::default() };
        let touches = touches(&labels, config, LineHolders::Every, 2, None);
        let found: Vec<_> = touches.iter().map(|touch| (touch.user, touch.mode, touch.lines.clone())).collect();
        let user = |module| User::Module(ModuleId(module));
        assert_eq!(
            found,
            [(user(0), AccessMode::ReadWrite, lines(0, 13).into()), (user(1), AccessMode::Read, lines(14, 16).into())]
        );
        assert!(touches.iter().all(|touch| touch.structure == lines(0, 20)));
    }

    #[test]
    fn with_sharing_modules_a_use_counts_for_the_whole_gpu() {
        let uses = [used(3, AccessMode::Read, lines(0, 6))];
        let labels = [label(lines(0, 8), &uses)];
        let config = TableConfig { sharing: 2, ..TableConfig::default() };
        let found: Vec<User> =
            touches(&labels, config, LineHolders::Every, 4, None).into_iter().map(|touch| touch.user).collect();
        assert_eq!(found, [2, 3].map(|module| User::Module(ModuleId(module))));
    }

    #[test]
    fn with_known_homes_a_use_concerns_only_the_homes_of_its_lines() {
        let uses = [used(0, AccessMode::Read, lines(0, 6))];
        let homes = [lines(0, 4).into(), lines(4, 8).into()];
        let labels = [Label { homes: &homes, ..label(lines(0, 8), &uses) }];
        let touches = touches(&labels, TableConfig::default(), LineHolders::Home, 2, None);
        let found: Vec<_> = touches.iter().map(|touch| (touch.concerns, touch.lines.clone())).collect();
        assert_eq!(
            found,
            [(ModuleSet::from_bits(0b01), lines(0, 4).into()), (ModuleSet::from_bits(0b10), lines(4, 6).into())]
        );
        assert!(touches[0].is_local(ModuleId(0)) && touches[1].is_remote(ModuleId(1)));
        assert!(!touches[1].is_local(ModuleId(0)), "it keeps no copy of lines homed elsewhere");
    }
}

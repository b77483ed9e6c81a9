//! Flag events known to an L2, and the modules already notified. Events on a line are known in its slice.
//!
//! A flag event is a store that some thread may poll for. An event is known wherever the store has passed, and travels
//! with copies of the line. A copy that leaves after the store shows the event to every reader, even if the copy was
//! fetched for another flag on the line. Known events are kept until their kernel ends, because a later copy cannot
//! undo an earlier store.
//!
//! Each launch numbers flags anew. Copies of pages and blocks may be in transit while a kernel ends and another begins
//! in the slot. The accompanying flags therefore carry a launch number ([`VisibleFlag`]).

use crate::message::Flag;
use crate::sm::kernel_slot::{KernelSlot, entry};
use rustc_hash::FxHashMap;
use tombolo_types::{Line, ModuleId};

/// A set with flags from concurrent kernels.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlagSet {
    /// Bit `i` is set if the set contains flag number `i`; one bit vector per kernel slot.
    kernels: Vec<Vec<u64>>,
}

impl FlagSet {
    /// Adds a flag, except [`Flag::NONE`].
    pub(crate) fn add(&mut self, flag: Flag) {
        if flag == Flag::NONE {
            return;
        }
        let words = entry(&mut self.kernels, flag.kernel());
        let word = flag.number() as usize / 64;
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        words[word] |= 1 << (flag.number() % 64);
    }

    /// True if the set contains a flag; never for [`Flag::NONE`].
    #[inline]
    pub(crate) fn has(&self, flag: Flag) -> bool {
        flag != Flag::NONE && self.holds(flag)
    }

    fn holds(&self, flag: Flag) -> bool {
        let words = self.kernels.get(flag.kernel().index());
        let word = words.and_then(|words| words.get(flag.number() as usize / 64));
        word.is_some_and(|word| word >> (flag.number() % 64) & 1 != 0)
    }

    /// Forgets all flags from a kernel.
    pub(crate) fn forget(&mut self, kernel: KernelSlot) {
        if let Some(words) = self.kernels.get_mut(kernel.index()) {
            words.clear();
        }
    }

    fn is_empty(&self) -> bool {
        self.kernels.iter().all(Vec::is_empty)
    }
}

/// A flag shown by a line, in transit to another module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VisibleFlag {
    line: Line,
    flag: Flag,
    /// Launch number within the program.
    launch: u32,
}

impl VisibleFlag {
    /// The line showing the flag.
    pub(crate) fn line(&self) -> Line {
        self.line
    }
}

/// Flag events known on the lines in a slice group, or in a module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    known: FlagSet,
    /// Launch of the known flags, by kernel slot.
    launches: Vec<u32>,
    /// Known events by line, in the order of their arrival.
    by_line: FxHashMap<Line, LineFlags>,
}

/// Known events on one line. The order of the list is the order of arrival, so a position in it tells which events a
/// module has already received.
#[derive(Clone, Debug, Default)]
struct LineFlags {
    events: Vec<Flag>,
    /// Number of events already reported, for each module.
    reported: Vec<(ModuleId, usize)>,
}

impl Flags {
    /// Records a known store to `line` that leaves `flag`.
    pub(crate) fn learn(&mut self, line: Line, flag: Flag) {
        if flag == Flag::NONE {
            return;
        }
        let known = self.knows(flag);
        let events = &mut self.by_line.entry(line).or_default().events;
        // A store may leave its flag on several lines, and copies of each line must show it.
        if known && events.contains(&flag) {
            return;
        }
        events.push(flag);
        self.known.add(flag);
    }

    /// True if no event is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_line.is_empty()
    }

    /// True if a store that leaves `flag` is known, on any line.
    fn knows(&self, flag: Flag) -> bool {
        self.known.has(flag)
    }

    /// Returns `flag` if the store to `line` is known, otherwise [`Flag::NONE`]. A store to several lines may have
    /// reached only some.
    pub(crate) fn seen(&self, line: Line, flag: Flag) -> Flag {
        let shows = || self.by_line.get(&line).is_some_and(|line| line.events.contains(&flag));
        if self.knows(flag) && shows() { flag } else { Flag::NONE }
    }

    /// All events on a line, to accompany a copy.
    pub(crate) fn shown(&self, line: Line) -> impl Iterator<Item = VisibleFlag> + '_ {
        let events = self.by_line.get(&line).map(|line| &line.events[..]).unwrap_or_default();
        events.iter().map(move |&flag| VisibleFlag { line, flag, launch: self.launch(flag.kernel()) })
    }

    fn launch(&self, kernel: KernelSlot) -> u32 {
        self.launches.get(kernel.index()).copied().unwrap_or_default()
    }

    /// Records an event shown by an arriving copy. An event from an older launch in this slot belongs to an ended
    /// kernel and is dropped. An event from a newer launch also begins this launch at the receiver.
    pub(crate) fn learn_shown(&mut self, VisibleFlag { line, flag, launch }: VisibleFlag) {
        let kernel = flag.kernel();
        if launch > self.launch(kernel) {
            self.begin(kernel, launch);
        }
        if launch == self.launch(kernel) {
            self.learn(line, flag);
        }
    }

    /// Events on `line` that a copy leaving now brings to `module` for the first time. Each module receives each event
    /// of a line only once.
    pub(crate) fn news(&mut self, line: Line, module: ModuleId) -> Vec<Flag> {
        let Some(LineFlags { events, reported: told }) = self.by_line.get_mut(&line) else { return Vec::new() };
        let index = told.iter().position(|&(other, _)| other == module).unwrap_or_else(|| {
            told.push((module, 0));
            told.len() - 1
        });
        let before = std::mem::replace(&mut told[index].1, events.len());
        events[before..].to_vec()
    }

    /// Begins a kernel in a slot, with its launch number. Flags of the slot's previous kernel are forgotten.
    pub(crate) fn begin(&mut self, kernel: KernelSlot, launch: u32) {
        *entry(&mut self.launches, kernel) = launch;
        self.known.forget(kernel);
        if self.known.is_empty() {
            self.by_line.clear();
            return;
        }
        self.by_line.retain(|_, line| {
            line.forget(kernel);
            !line.events.is_empty()
        });
    }
}

impl LineFlags {
    fn forget(&mut self, kernel: KernelSlot) {
        let is_kept = |flag: &Flag| flag.kernel() != kernel;
        for (_, told) in &mut self.reported {
            *told = self.events[..*told].iter().filter(|flag| is_kept(flag)).count();
        }
        self.events.retain(is_kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::stream::Token;

    #[test]
    fn each_module_is_told_each_event_of_a_line_once() {
        let mut flags = Flags::default();
        flags.learn(Line(1), Flag(70));
        flags.learn(Line(2), Flag(3));
        flags.learn(Line(1), Flag(70));
        assert_eq!(flags.news(Line(1), ModuleId(0)), [Flag(70)]);
        flags.learn(Line(1), Flag(5));
        assert_eq!(flags.news(Line(1), ModuleId(0)), [Flag(5)]);
        assert_eq!(flags.news(Line(1), ModuleId(1)), [Flag(70), Flag(5)]);
        assert!(flags.news(Line(1), ModuleId(1)).is_empty() && flags.news(Line(9), ModuleId(0)).is_empty());
    }

    #[test]
    fn a_store_to_several_lines_leaves_its_flag_on_each() {
        let mut flags = Flags::default();
        flags.learn(Line(1), Flag(7));
        flags.learn(Line(2), Flag(7));
        flags.learn(Line(2), Flag(7));
        assert_eq!(flags.news(Line(2), ModuleId(0)), [Flag(7)]);
        assert_eq!(flags.news(Line(1), ModuleId(0)), [Flag(7)]);
    }

    #[test]
    fn a_store_that_has_reached_one_of_its_lines_is_not_seen_on_another() {
        let mut flags = Flags::default();
        flags.learn(Line(1), Flag(7));
        assert_eq!([1, 2].map(|line| flags.seen(Line(line), Flag(7))), [Flag(7), Flag::NONE]);
        flags.learn(Line(2), Flag(7));
        assert_eq!([1, 2].map(|line| flags.seen(Line(line), Flag(7))), [Flag(7); 2]);
        assert_eq!(flags.seen(Line(1), Flag::NONE), Flag::NONE);
    }

    #[test]
    fn what_is_known_stays_known_until_it_is_forgotten() {
        let mut flags = Flags::default();
        flags.learn(Line(1), Flag(64));
        assert!(flags.knows(Flag(64)) && !flags.knows(Flag(65)) && !flags.knows(Flag::NONE));
        flags.begin(KernelSlot(0), 1);
        assert!(!flags.knows(Flag(64)) && flags.news(Line(1), ModuleId(0)).is_empty());
    }

    #[test]
    fn a_kernels_flags_are_forgotten_without_those_of_others() {
        let mut flags = Flags::default();
        let [mine, other] = [0, 3].map(|slot| Flag::of(KernelSlot(slot), Token(7)));
        let later = Flag::of(KernelSlot(3), Token(8));
        flags.learn(Line(1), mine);
        flags.learn(Line(1), other);
        assert_eq!(flags.news(Line(1), ModuleId(0)), [mine, other]);
        flags.learn(Line(1), later);
        flags.begin(KernelSlot(0), 1);
        assert!(!flags.knows(mine) && flags.knows(other));
        assert_eq!(flags.news(Line(1), ModuleId(0)), [later], "an event already reported is not reported again");
        assert_eq!(flags.news(Line(1), ModuleId(1)), [other, later]);
    }

    #[test]
    fn a_copy_that_was_on_its_way_as_a_kernel_began_shows_no_flag_of_the_one_before() {
        let (mut old, mut new) = (Flags::default(), Flags::default());
        old.learn(Line(1), Flag(7));
        let on_its_way: Vec<VisibleFlag> = old.shown(Line(1)).collect();
        new.begin(KernelSlot(0), 1);
        on_its_way.into_iter().for_each(|shown| new.learn_shown(shown));
        assert!(!new.knows(Flag(7)) && new.is_empty());
        // A module without notice of a launch learns about it from the launch's flags.
        new.learn(Line(1), Flag(9));
        new.shown(Line(1)).for_each(|shown| old.learn_shown(shown));
        assert!(!old.knows(Flag(7)) && old.knows(Flag(9)));
    }
}

//! Host accesses implied by a program's copies: data set before the first launch, and results read after the last
//! launch.

use std::ops::Range;
use tombolo_types::HostPhase;
use tombolo_types::array::{merge_ranges, subtract};
use tombolo_types::stream::Command;

/// Ranges that the host copies to the device before the first launch, except for ranges already covered by host phases
/// before this launch. Copied data has contents, so the host must have set the ranges before the first command.
pub(crate) fn copied_in(commands: &[Command], phases: &[HostPhase]) -> Vec<Range<u64>> {
    let first = commands.iter().position(|command| command.kernel().is_some()).unwrap_or(commands.len());
    moved(&commands[..first], phases, true)
}

/// Ranges that the host copies from the device after the last launch, except for ranges read by later host phases.
pub(crate) fn copied_back(commands: &[Command], phases: &[HostPhase]) -> Vec<Range<u64>> {
    let behind = commands.iter().rposition(|command| command.kernel().is_some()).map_or(0, |last| last + 1);
    moved(&commands[behind..], phases, false)
}

/// Ranges that `commands` copy in a direction (`in_there`: to the device), minus the ranges accessed by host phases in
/// the matching direction.
fn moved(commands: &[Command], phases: &[HostPhase], in_there: bool) -> Vec<Range<u64>> {
    let (mut copied, mut touched) = (Vec::new(), Vec::new());
    for command in commands {
        match *command {
            Command::Copy { address, bytes, to_device } if to_device == in_there => {
                copied.push(address..address.saturating_add(bytes));
            }
            Command::Host { phase } => {
                let HostPhase { reads, writes } = &phases[phase as usize];
                touched.extend(if in_there { writes } else { reads }.iter().cloned());
            }
            Command::Launch { .. } | Command::Copy { .. } | Command::Barrier => {}
        }
    }
    merge_ranges(&mut copied);
    merge_ranges(&mut touched);
    subtract(&copied, &touched)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(range: Range<u64>) -> Vec<Range<u64>> {
        std::iter::once(range).collect()
    }

    fn copy(address: u64, to_device: bool) -> Command {
        Command::Copy { address, bytes: 10, to_device }
    }

    #[test]
    fn copies_before_the_first_launch_and_behind_the_last_count() {
        let launch = || Command::launch(0, 0);
        let commands = [
            copy(100, true),
            copy(110, true),
            copy(0, false),
            launch(),
            copy(200, true),
            copy(300, false),
            launch(),
            copy(500, false),
            Command::Barrier,
            copy(400, false),
            copy(600, true),
        ];
        assert_eq!((copied_in(&commands, &[]), copied_back(&commands, &[])), (one(100..120), vec![400..410, 500..510]));
        let copies = [copy(10, true), copy(u64::MAX, false)];
        assert_eq!((copied_in(&copies, &[]), copied_back(&copies, &[])), (one(10..20), vec![]), "without a launch");
    }

    #[test]
    fn what_phases_there_touch_is_told_by_them() {
        let flag = HostPhase { reads: one(4..6), writes: one(2..4) };
        let commands = [
            Command::Host { phase: 0 },
            copy(0, true),
            Command::launch(0, 0),
            copy(0, false),
            Command::Host { phase: 0 },
        ];
        let phases = [flag];
        assert_eq!(copied_in(&commands, &phases), [0..2, 4..10]);
        assert_eq!(copied_back(&commands, &phases), [0..4, 6..10]);
    }
}

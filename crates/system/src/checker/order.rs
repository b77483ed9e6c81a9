//! The happens-before order between a program's launches. Launches in one stream are ordered. All launches before a
//! host synchronisation precede all launches after it. Any two further launches are concurrent, regardless of their
//! times.

use std::collections::BTreeSet;
use tombolo_types::stream::Command;

/// Position in the happens-before order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LaunchPosition {
    window: u32,
    stream: u32,
}

/// The happens-before order between a program's launches. A *window* is either a single launch without concurrent
/// launches, or all launches between two host commands. Every launch in a window happens before every launch in the
/// next window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchOrder(Vec<LaunchPosition>);

impl LaunchOrder {
    /// Derives the order from a program's commands.
    pub fn of(commands: &[Command]) -> LaunchOrder {
        let mut places = Vec::new();
        let mut window = 0;
        let held_up = |command: &Command| match command {
            Command::Launch { .. } => false,
            Command::Copy { .. } | Command::Host { .. } | Command::Barrier => true,
        };
        for between in commands.split(held_up) {
            let streams = between.iter().filter_map(|command| match *command {
                Command::Launch { stream, .. } => Some(stream),
                Command::Copy { .. } | Command::Host { .. } | Command::Barrier => None,
            });
            let is_one = streams.clone().collect::<BTreeSet<_>>().len() == 1;
            for stream in streams {
                places.push(LaunchPosition { window, stream });
                window += u32::from(is_one);
            }
            window += u32::from(!is_one);
        }
        LaunchOrder(places)
    }

    fn place(&self, launch: u32) -> LaunchPosition {
        self.0.get(launch as usize).copied().unwrap_or_default()
    }

    /// Window index for a launch.
    pub(super) fn window(&self, launch: u32) -> u32 {
        self.place(launch).window
    }

    /// True if `earlier` happens before `later`.
    pub(super) fn precedes(&self, earlier: u32, later: u32) -> bool {
        let (before, behind) = (self.place(earlier), self.place(later));
        before.window < behind.window || before == behind && earlier < later
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_of_a_stream_are_in_order_and_others_are_not() {
        let order = LaunchOrder::of(&[0, 1, 0].map(|stream| Command::launch(0, stream)));
        let pairs = [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1), (0, 0)];
        let before = pairs.map(|(earlier, later)| order.precedes(earlier, later));
        assert_eq!(before, [false, false, true, false, false, false, false]);
        assert_eq!([0, 1, 2].map(|launch| order.window(launch)), [0; 3]);
    }

    #[test]
    fn the_host_puts_all_in_order_and_one_stream_has_a_window_a_launch() {
        let launch = |stream| Command::launch(0, stream);
        let commands =
            [launch(0), launch(1), Command::Barrier, launch(1), launch(1), Command::Host { phase: 0 }, launch(0)];
        let order = LaunchOrder::of(&commands);
        assert!(order.precedes(0, 3) && order.precedes(1, 2) && order.precedes(3, 4) && !order.precedes(0, 1));
        let windows: BTreeSet<u32> = (0..5).map(|launch| order.window(launch)).collect();
        assert_eq!(windows.len(), 4);
    }
}

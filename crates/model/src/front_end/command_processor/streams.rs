//! Stream scheduling: selects commands that may begin. Commands in a stream run serially, streams run concurrently, up
//! to the next command that the host waits for.

use std::collections::VecDeque;
use tombolo_types::LaunchDevices;
use tombolo_types::stream::Command;

/// Kernel launch in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamLaunch {
    /// Command index.
    pub(super) command: usize,
    /// Launch number within the program.
    pub(super) launch: u32,
    /// Kernel index.
    pub(super) kernel: u32,
    /// GPUs or modules running the kernel.
    pub(super) on: LaunchDevices,
    /// Stream in the host program.
    pub(super) stream: u32,
    /// True for the first launch in its stream.
    pub(super) is_first: bool,
    /// True if the launch packet was queued while the previous kernel in its stream ran.
    pub(super) is_queued: bool,
    /// Number of times that the host had waited before it enqueued the packet.
    pub(super) waits: u32,
}

/// Command that may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextCommand {
    /// Kernel launch.
    Launch(StreamLaunch),
    /// Host command, after all earlier commands have ended.
    Host(usize),
    /// Program end: all commands have ended.
    End,
}

/// Stream in the host program.
#[derive(Clone, Debug)]
struct Stream {
    number: u32,
    /// Commands issued by the host but not yet started, with their launch numbers.
    queue: VecDeque<(usize, u32)>,
    /// True while a launch in this stream is running.
    is_busy: bool,
    has_launched: bool,
    /// True if the host has issued the next launch by the time the latest launch has begun.
    is_queued: bool,
}

/// All streams in a program.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams {
    /// Index of the first command not yet issued by the host.
    next: usize,
    launches: u32,
    /// Streams, ordered by first launch.
    streams: Vec<Stream>,
    /// Number of launches in flight.
    under_way: u32,
    /// True while the host waits for its own command.
    host_waits: bool,
    /// Number of times that the host has waited.
    waits: u32,
}

impl Streams {
    /// Index of the first command not yet issued by the host.
    pub(super) fn next_command(&self) -> usize {
        self.next
    }

    /// Starts and returns the earliest command that may begin. `None` if all remaining commands must wait.
    pub(super) fn begin(&mut self, commands: &[Command]) -> Option<NextCommand> {
        while !self.host_waits {
            self.issue(commands);
            let ready = self.streams.iter_mut().filter(|stream| !stream.is_busy && !stream.queue.is_empty());
            if let Some(stream) = ready.min_by_key(|stream| stream.queue[0].0) {
                self.under_way += 1;
                return Some(NextCommand::Launch(stream.begin(commands, self.waits)));
            }
            if self.under_way > 0 {
                return None;
            }
            match commands.get(self.next) {
                None => return Some(NextCommand::End),
                Some(Command::Launch { .. }) => unreachable!("launches have been issued"),
                Some(Command::Barrier) => {
                    self.next += 1;
                    self.host_waited();
                }
                Some(Command::Copy { .. } | Command::Host { .. }) => {
                    self.next += 1;
                    self.host_waits = true;
                    self.host_waited();
                    return Some(NextCommand::Host(self.next - 1));
                }
            }
        }
        None
    }

    /// Records the end of a launch in stream `number`.
    pub(super) fn ended(&mut self, number: u32) {
        self.under_way -= 1;
        let stream = self.streams.iter_mut().find(|stream| stream.number == number);
        stream.expect("a stream that has launched").is_busy = false;
    }

    /// Records the end of a host command.
    pub(super) fn host_ended(&mut self) {
        self.host_waits = false;
    }

    /// Issues launches to their streams, up to the next command that the host waits for.
    fn issue(&mut self, commands: &[Command]) {
        while let Some(Command::Launch { stream: number, .. }) = commands.get(self.next) {
            let place = self.streams.iter().position(|stream| stream.number == *number).unwrap_or_else(|| {
                self.streams.push(Stream::new(*number));
                self.streams.len() - 1
            });
            self.streams[place].queue.push_back((self.next, self.launches));
            self.next += 1;
            self.launches += 1;
        }
    }

    /// Records a host synchronization: afterwards no packet is queued while a kernel runs.
    fn host_waited(&mut self) {
        self.waits += 1;
        self.streams.iter_mut().for_each(|stream| stream.is_queued = false);
    }
}

impl Stream {
    fn new(number: u32) -> Stream {
        Stream { number, queue: VecDeque::new(), is_busy: false, has_launched: false, is_queued: false }
    }

    /// Starts the earliest launch. `waits`: number of times that the host has waited.
    fn begin(&mut self, commands: &[Command], waits: u32) -> StreamLaunch {
        let (command, launch) = self.queue.pop_front().expect("a launch that may begin");
        let Command::Launch { kernel, stream, on } = commands[command] else { panic!("streams hold launches") };
        self.is_busy = true;
        let is_first = !std::mem::replace(&mut self.has_launched, true);
        let is_queued = std::mem::replace(&mut self.is_queued, true);
        StreamLaunch { command, launch, kernel, on, stream, is_first, is_queued, waits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(streams: &mut Streams, commands: &[Command]) -> Vec<NextCommand> {
        std::iter::from_fn(|| streams.begin(commands)).take_while(|next| *next != NextCommand::End).collect()
    }

    fn launches(begun: &[NextCommand]) -> Vec<(usize, u32, bool, bool)> {
        let told = |next: &NextCommand| match *next {
            NextCommand::Launch(StreamLaunch { command, launch, is_first, is_queued, .. }) => {
                (command, launch, is_first, is_queued)
            }
            NextCommand::Host(_) | NextCommand::End => panic!("a launch"),
        };
        begun.iter().map(told).collect()
    }

    #[test]
    fn a_stream_runs_one_launch_at_a_time_beside_others() {
        let commands = [(0, 0), (1, 0), (2, 7)].map(|(kernel, stream)| Command::launch(kernel, stream));
        let mut streams = Streams::default();
        assert_eq!(launches(&begun(&mut streams, &commands)), [(0, 0, true, false), (2, 2, true, false)]);
        streams.ended(0);
        assert_eq!(launches(&begun(&mut streams, &commands)), [(1, 1, false, true)]);
        streams.ended(7);
        assert_eq!(streams.begin(&commands), None);
        streams.ended(0);
        assert_eq!(streams.begin(&commands), Some(NextCommand::End));
    }

    #[test]
    fn what_the_host_waits_for_comes_behind_all_and_holds_up_all() {
        let host = Command::Host { phase: 0 };
        let commands = [Command::launch(0, 0), host.clone(), Command::launch(1, 1), Command::Barrier, host];
        let mut streams = Streams::default();
        assert_eq!(launches(&begun(&mut streams, &commands)), [(0, 0, true, false)]);
        streams.ended(0);
        assert_eq!(begun(&mut streams, &commands), [NextCommand::Host(1)]);
        assert_eq!(streams.begin(&commands), None, "the host waits");
        streams.host_ended();
        assert_eq!(launches(&begun(&mut streams, &commands)), [(2, 1, true, false)]);
        streams.ended(1);
        assert_eq!(begun(&mut streams, &commands), [NextCommand::Host(4)]);
    }

    #[test]
    fn behind_the_host_no_packet_is_queued() {
        for (between, queued) in [(None, true), (Some(Command::Barrier), false)] {
            let commands: Vec<Command> =
                [Some(Command::launch(0, 0)), between, Some(Command::launch(1, 0))].into_iter().flatten().collect();
            let mut streams = Streams::default();
            begun(&mut streams, &commands);
            streams.ended(0);
            let [(_, 1, false, is_queued)] = launches(&begun(&mut streams, &commands))[..] else { panic!("one") };
            assert_eq!(is_queued, queued);
        }
    }
}

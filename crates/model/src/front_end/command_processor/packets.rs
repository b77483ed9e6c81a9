//! Packet reading: the command processor reads launch packets serially, and its elision table handles them serially.

use super::streams::StreamLaunch;
use tombolo_machine::MachineConfig;
use tombolo_machine::machine::TableExposure;
use tombolo_types::Ps;

/// Progress of reading packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketReader {
    packet_latency: Ps,
    /// The elision table, if one decides at boundaries.
    table: Option<ElisionTable>,
    /// Time at which the latest packet has been read.
    read: Ps,
}

/// Time that the elision table takes for a packet, and the packets for which it delays the kernel.
#[derive(Clone, Copy, Debug)]
struct ElisionTable {
    latency: Ps,
    exposed: TableExposure,
    /// Number of times that the host had waited before the latest packet; `None` before the first packet.
    waits: Option<u32>,
    /// Time at which the host enqueued the latest packet.
    enqueued: Ps,
    /// Time at which the table has handled the latest packet, under [`TableExposure::Queued`].
    handled: Ps,
}

impl PacketReader {
    /// Creates a reader without packets. `elides`: true if an elision table decides.
    pub(super) fn new(machine: &MachineConfig, elides: bool) -> PacketReader {
        let table = ElisionTable {
            latency: machine.host.table_latency,
            exposed: machine.host.table_exposed,
            waits: None,
            enqueued: Ps::ZERO,
            handled: Ps::ZERO,
        };
        PacketReader { packet_latency: machine.host.packet_latency, table: elides.then_some(table), read: Ps::ZERO }
    }

    /// Reads the packet of a launch that may begin at `now`, after all earlier packets. Returns the time at which the
    /// launch's boundary may begin.
    pub(super) fn read(&mut self, now: Ps, launch: &StreamLaunch) -> Ps {
        self.read = self.read.max(now) + self.packet_latency;
        if let Some(table) = &mut self.table {
            self.read = table.handle(now, self.read, launch);
        }
        self.read
    }
}

impl ElisionTable {
    /// Handles a packet read at `read`, for a launch that may begin at `now`; returns the time at which its boundary may
    /// begin. The host takes no time to enqueue a packet: it enqueues all packets up to its next wait at once.
    fn handle(&mut self, now: Ps, read: Ps, launch: &StreamLaunch) -> Ps {
        let is_first = self.waits.is_none();
        if self.waits != Some(launch.waits) {
            self.waits = Some(launch.waits);
            self.enqueued = now;
        }
        match self.exposed {
            TableExposure::First if is_first => read + self.latency,
            TableExposure::Host if !launch.is_queued => read + self.latency,
            TableExposure::First | TableExposure::Host => read,
            TableExposure::Queued => {
                self.handled = self.handled.max(self.enqueued) + self.latency;
                self.handled.max(read)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::LaunchDevices;

    fn launch(number: u32) -> StreamLaunch {
        StreamLaunch {
            command: number as usize,
            launch: number,
            kernel: 0,
            on: LaunchDevices::All,
            stream: 0,
            is_first: number == 0,
            is_queued: number % 2 == 1,
            waits: number / 2,
        }
    }

    /// Times in microseconds at which four launches may continue: two in a row, two after the host has waited at 30 us.
    /// A packet takes 2 us, the table 6 us, and a kernel 5 us from its packet on.
    fn continued(exposed: TableExposure, elides: bool) -> Vec<u64> {
        let mut machine = tombolo_machine::machine("chiplet-4").unwrap().check().unwrap();
        machine.host.packet_latency = Ps::from_ns(2000);
        machine.host.table_latency = Ps::from_ns(6000);
        machine.host.table_exposed = exposed;
        let mut packets = PacketReader::new(&machine, elides);
        let mut now = Ps::ZERO;
        let mut times = Vec::new();
        for number in 0..4 {
            if number == 2 {
                now = Ps::from_ns(30_000);
            }
            let continues = packets.read(now, &launch(number));
            times.push(continues.0 / 1_000_000);
            now = continues + Ps::from_ns(5000);
        }
        times
    }

    #[test]
    fn without_a_table_packets_alone_delay_kernels() {
        assert_eq!(continued(TableExposure::Queued, false), [2, 9, 32, 39]);
    }

    #[test]
    fn the_table_delays_the_first_kernel_of_the_program() {
        assert_eq!(continued(TableExposure::First, true), [8, 15, 32, 39]);
    }

    #[test]
    fn the_table_delays_each_kernel_behind_the_host() {
        assert_eq!(continued(TableExposure::Host, true), [8, 15, 38, 45]);
    }

    #[test]
    fn the_table_delays_a_kernel_by_what_exceeds_the_kernels_before_it() {
        // The first packet is handled from 0 to 6 us, the second from 6 to 12 us while the first kernel runs until 11 us;
        // its packet has been read at 13 us. The third is handled from 30 to 36 us, the fourth until 42 us; read at 43 us.
        assert_eq!(continued(TableExposure::Queued, true), [6, 13, 36, 43]);
    }
}

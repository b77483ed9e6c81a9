//! Copy engine of a module: reads lines from the module's memory and sends them to another module's memory, or to the
//! host. A coherent host has a copy engine, too: this engine copies to all GPUs in parallel.
//!
//! Real lines are moved. Each line is read in the L2 on the sending side or by its DRAM, crosses the port, the links
//! and the switch, and is written by the receiving DRAM; the receiving L2 drops any copy of the line. Copies from a GPU
//! to further GPUs run in sequence; copies to a coherent host run in parallel with them. The link's rate limits the
//! sending rate. Not modelled: further flow control, several engines per GPU.

use crate::fabric::packet::{Chunk, CopyName, Packet};
use crate::fabric::sideband::SideData;
use crate::front_end::schedule::PeerCopy;
use crate::l2::backend::{L2Design, L2Slice};
use crate::l2::departure::Departure;
use crate::message::Message;
use crate::module::config::ModuleSite;
use crate::module::parts::Parts;
use crate::observe::value_probe::Contents;
use std::collections::VecDeque;
use std::ops::Range;
use tombolo_protocol::copies::{ArrivalStep, Copies};
use tombolo_types::{ComponentId, Line, Mask, ModuleId, Page, Ps, Serializer};

/// Counters of a copy engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyStats {
    /// Copies in the program's schedule.
    pub calls: u64,
    /// Bytes sent for copies in the schedule, without headers.
    pub bytes: u64,
    /// Bytes sent for pages, without headers.
    pub(crate) page_bytes: u64,
}

/// A requested copy.
#[derive(Clone, Copy, Debug)]
struct CopyJob {
    copy: CopyName,
    /// Destination module; `None` is the host.
    to: Option<ModuleId>,
}

/// The copy in progress.
#[derive(Clone, Copy, Debug)]
struct RunningCopy {
    job: CopyJob,
    next: Line,
    end: Line,
}

/// A queue of copies, made in sequence.
#[derive(Clone, Debug)]
struct CopyLane {
    jobs: VecDeque<CopyJob>,
    running: Option<RunningCopy>,
    /// Rate limit of the link.
    link: Serializer,
}

/// A copy engine.
#[derive(Clone, Debug)]
pub struct CopyEngine {
    id: ComponentId,
    /// The host has a lane per GPU module. A GPU has a lane to the other GPUs, and a second lane to a coherent host.
    lanes: Vec<CopyLane>,
    host: Option<ModuleId>,
    of_host: bool,
    /// Lines read and sent at a time.
    chunk: u64,
    to_host: Serializer,
    from_host: Serializer,
    /// Time at which memory has accepted all arrived lines.
    taken: Ps,
    /// Counters.
    pub stats: CopyStats,
}

impl CopyEngine {
    /// An idle engine.
    pub(crate) fn new<D: Contents>(config: &ModuleSite<D>) -> CopyEngine {
        let (machine, layout) = (&config.machine, config.layout);
        let lane = |rate| CopyLane { jobs: VecDeque::new(), running: None, link: Serializer::new(rate) };
        let to_host = || lane(crate::convert::host_rate(machine));
        let (host, of_host) = (layout.host(), layout.host() == Some(config.module));
        let lanes = if of_host {
            vec![lane(crate::convert::rate_from_host(machine)); usize::from(layout.modules)]
        } else {
            [lane(machine.gpu_link.rate)].into_iter().chain(host.map(|_| to_host())).collect()
        };
        CopyEngine {
            id: layout.copy_engine(config.module),
            lanes,
            host,
            of_host,
            chunk: machine.copy.chunk.0 / machine.line.bytes(),
            to_host: Serializer::new(machine.paging.host_rate),
            from_host: Serializer::new(machine.paging.host_rate),
            taken: Ps::ZERO,
            stats: CopyStats::default(),
        }
    }

    /// Handles a message.
    pub(crate) fn handle<C: L2Design<D>, D: Contents>(
        &mut self,
        message: &Message<D>,
        parts: &mut Parts<'_, '_, C, D>,
    ) {
        match *message {
            Message::Copy { copy, to } => {
                let lane = self.lane(to);
                self.lanes[usize::from(lane)].jobs.push_back(CopyJob { copy, to });
                self.begin(lane, parts);
            }
            Message::CopyOn { lane } => self.go_on(lane, parts),
            Message::TakePage { page } => self.take_page(page, parts),
            other => panic!("{}: a copy engine got {other:?}", parts.config.module),
        }
    }

    /// Lane for copies to module `to`.
    fn lane(&self, to: Option<ModuleId>) -> u8 {
        match to {
            Some(to) if self.of_host => to.0,
            to => u8::from(to.is_some() && to == self.host),
        }
    }

    /// Begins the next copy of a lane, unless a copy is in progress.
    fn begin<C: L2Design<D>, D: Contents>(&mut self, number: u8, parts: &mut Parts<'_, '_, C, D>) {
        let lane = &mut self.lanes[usize::from(number)];
        if lane.running.is_some() {
            return;
        }
        let Some(job) = lane.jobs.pop_front() else { return };
        let (first, end, call) = match job.copy {
            CopyName::Page(page) => {
                let mut lines = parts.config.map.page_lines(page);
                let first = lines.next().expect("a page has a line");
                (first, Line(first.0 + 1 + lines.count() as u64), Ps(1))
            }
            CopyName::Listed(index) => {
                let PeerCopy { lines, continues, .. } = parts.config.schedule.copies[index as usize];
                self.stats.calls += u64::from(!continues);
                let call = if continues { Ps::ZERO } else { parts.config.machine.copy.call };
                (lines.first, lines.end, call.max(Ps(1)))
            }
        };
        lane.running = Some(RunningCopy { job, next: first, end });
        parts.out.send(parts.out.now() + call, self.id, self.id, Message::CopyOn { lane: number });
    }

    /// Reads and sends the next chunk of a lane.
    fn go_on<C: L2Design<D>, D: Contents>(&mut self, number: u8, parts: &mut Parts<'_, '_, C, D>) {
        let place = usize::from(number);
        let running = self.lanes[place].running.take().expect("it goes on with a copy");
        let RunningCopy { job: CopyJob { copy, to }, next: first, end } = running;
        let lines = self.chunk.min(end.0 - first.0);
        let (now, next) = (parts.out.now(), Line(first.0 + lines));
        let is_last = next == end;
        let ready = self.read(copy, to, first..next, parts);
        self.count(copy, lines * parts.config.machine.line.bytes());
        let bytes = parts.config.packet_sizes.copied(lines);
        let left = match to {
            Some(to) => {
                let chunk = Packet::Chunk(Chunk { copy, first, lines: lines as u16, is_last });
                parts.at_uncore(self.id).send(Departure::at(ready), to, chunk);
                self.lanes[place].link.send(ready, bytes)
            }
            None => self.to_host.send(ready, bytes),
        };
        if is_last {
            if to.is_none() {
                self.done(copy, left, parts);
            }
            self.begin(number, parts);
            return;
        }
        self.lanes[place].running = Some(RunningCopy { job: CopyJob { copy, to }, next, end });
        // The next chunk is read early enough to leave when the link is free.
        let at = left.saturating_sub(ready - now).max(now + Ps(1));
        parts.out.send(at, self.id, self.id, Message::CopyOn { lane: number });
    }

    /// Reads lines: lines complete in the L2 are read in the L2, all remaining lines in memory. Returns the time when
    /// all are read. Contents and visible flags are stored as side data for the chunk.
    fn read<C: L2Design<D>, D: Contents>(
        &self,
        copy: CopyName,
        to: Option<ModuleId>,
        lines: Range<Line>,
        parts: &mut Parts<'_, '_, C, D>,
    ) -> Ps {
        let (now, mut load) = (parts.out.now(), SideData::default());
        let mut ready = now;
        for line in (lines.start.0..lines.end.0).map(Line) {
            let slice = parts.config.map.slice(line);
            let found = parts.at_slice(slice, |slice, here| slice.read_for_copy(line, here));
            let memory = parts.as_slice(self.id, line).shared.memory.read(line);
            let data = rules(copy, parts).sent(memory, found.map(|(valid, held, _)| (valid, held)));
            let at = match found {
                Some((Mask::ALL, _, leaves)) => leaves.time(),
                Some(_) | None => parts.as_slice(self.id, line).read_memory(line, Mask::ALL, Departure::at(now)).done,
            };
            ready = ready.max(at);
            load.flags.extend(parts.as_slice(self.id, line).flags().shown(line));
            if size_of::<D>() != 0 {
                load.lines.push((line, carried(copy, line, parts), data));
            }
        }
        match (copy, to) {
            (CopyName::Page(page), None) => parts.config.sideband.keep(page, load),
            (CopyName::Page(_) | CopyName::Listed(_), _) => parts.config.sideband.load(copy, lines.start, load),
        }
        ready
    }

    fn count(&mut self, copy: CopyName, bytes: u64) {
        match copy {
            CopyName::Page(_) => self.stats.page_bytes += bytes,
            CopyName::Listed(_) => self.stats.bytes += bytes,
        }
    }

    /// A chunk for this module has arrived, complete at `ready`.
    pub(crate) fn arrive<C: L2Design<D>, D: Contents>(
        &mut self,
        chunk: Chunk,
        ready: Ps,
        parts: &mut Parts<'_, '_, C, D>,
    ) {
        let Chunk { copy, first, lines, is_last } = chunk;
        let load = parts.config.sideband.unload(copy, first);
        self.store(copy, (first, u64::from(lines)), load, ready, parts);
        if is_last {
            self.done(copy, self.taken, parts);
        }
    }

    /// A page arrives from the host.
    fn take_page<C: L2Design<D>, D: Contents>(&mut self, page: Page, parts: &mut Parts<'_, '_, C, D>) {
        let lines: Vec<Line> = parts.config.map.page_lines(page).collect();
        let count = lines.len() as u64;
        let ready = self.from_host.send(parts.out.now(), parts.config.packet_sizes.copied(count));
        self.store(CopyName::Page(page), (lines[0], count), parts.config.sideband.give(page), ready, parts);
        self.done(CopyName::Page(page), self.taken, parts);
    }

    /// Memory writes lines that have arrived at `ready`. The L2 drops its copies.
    fn store<C: L2Design<D>, D: Contents>(
        &mut self,
        copy: CopyName,
        (first, count): (Line, u64),
        load: SideData<D>,
        ready: Ps,
        parts: &mut Parts<'_, '_, C, D>,
    ) {
        let lines = || (first.0..first.0 + count).map(Line);
        for step in rules(copy, parts).arrival() {
            match step {
                ArrivalStep::DropLine => lines().for_each(|line| {
                    let slice = parts.config.map.slice(line);
                    parts.at_slice(slice, |slice, here| slice.overwrite_by_copy(line, here));
                }),
                ArrivalStep::Write => load.lines.iter().for_each(|(line, mask, data)| {
                    parts.as_slice(self.id, *line).shared.memory.write(*line, *mask, *data);
                }),
            }
        }
        for shown in load.flags {
            parts.as_slice(self.id, shown.line()).flags_mut().learn_shown(shown);
        }
        for line in lines() {
            let taken = parts.as_slice(self.id, line).store_memory(line, Mask::ALL, Departure::at(ready));
            self.taken = self.taken.max(taken);
        }
    }

    /// Notifies the driver that a copy is completely in memory at `at`.
    fn done<C: L2Design<D>, D: Contents>(&self, copy: CopyName, at: Ps, parts: &mut Parts<'_, '_, C, D>) {
        let at = at.max(parts.out.now()) + crate::convert::host_latency(&parts.config.machine);
        parts.out.send(at, self.id, parts.config.layout.driver(), Message::Copied { copy });
    }
}

/// Rules for a copy. Pages move by the rules for pages, which no rule for copies breaks.
fn rules<C: L2Design<D>, D: Contents>(copy: CopyName, parts: &Parts<'_, '_, C, D>) -> Copies {
    match copy {
        CopyName::Page(_) => Copies::default(),
        CopyName::Listed(_) => parts.config.copies,
    }
}

/// Bytes in a line changed by a copy at the destination.
fn carried<C: L2Design<D>, D: Contents>(copy: CopyName, line: Line, parts: &Parts<'_, '_, C, D>) -> Mask {
    match copy {
        CopyName::Page(_) => Mask::ALL,
        CopyName::Listed(index) => {
            let written = parts.config.schedule.copies[index as usize].written.mask(line);
            parts.config.copies.carried(written)
        }
    }
}

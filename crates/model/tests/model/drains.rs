//! Compares the drain counts in the timing model with the marks in `protocol::drain`. After each step of random sends,
//! acknowledgements and waits, both must agree on the completed waits.
//!
//! A count follows a module's messages to the end of their path, regardless of the wait's start. Marks attached later
//! find a forwarded message under a different sender. In a real plan this sender is a member too; here
//! [`InFlight::for_others`] records it.

use proptest::prelude::*;
use std::collections::BTreeMap;
use tombolo_model::l2::{DrainWaiter, Drains, DrainsConfig, Generation, Tickets};
use tombolo_protocol::drain::{
    AcknowledgedStore, MessageInFlight, MessageKind, Pool, Sender, StoreRoute, Wait, continuing_waits,
};
use tombolo_protocol::hmg::Hmg;
use tombolo_protocol::nhcc::Nhcc;
use tombolo_protocol::vi::ProtocolOptions;
use tombolo_protocol::{Action, Coherence, Topology};
use tombolo_types::{GpuId, Line, ModuleId, Ps, Scope};

/// Test machine: two GPUs with two modules each. Line `l` lives at module `l % 4`; the parity of `l / 4` selects the
/// GPU home on the remote GPU.
struct Machine;

impl Topology for Machine {
    fn gpus(&self) -> u8 {
        2
    }

    fn modules_per_gpu(&self) -> u8 {
        2
    }

    fn home(&self, _: ModuleId, line: Line) -> ModuleId {
        ModuleId((line.0 % 4) as u8)
    }

    fn remote_gpu_home(&self, gpu: GpuId, line: Line) -> ModuleId {
        ModuleId(gpu.0 * 2 + (line.0 / 4 % 2) as u8)
    }
}

/// Line whose region is invalidated. A single line suffices, since the model waits for all regions while marks
/// distinguish regions.
const SHARED: Line = Line(0);

const ACTIONS: [Action; 7] = [
    Action::DrainStores(Scope::Gpu),
    Action::DrainStores(Scope::Sys),
    Action::ForwardStores,
    Action::Flush,
    Action::AwaitStores,
    Action::DrainInvalidations(Scope::Gpu),
    Action::DrainInvalidations(Scope::Sys),
];

#[derive(Clone, Copy, Debug)]
enum DrainStep {
    /// A module stores to a line.
    Store { from: u8, line: u64 },
    /// A home invalidates a sharer: the system home invalidates a module in its own GPU or in the remote GPU, and a
    /// GPU home its sibling module.
    Invalidate { by_gpu_home: bool, beyond: bool },
    /// A message in flight is accepted. `forwards`: true if a GPU home forwards an accepted invalidation.
    Take { which: usize, forwards: bool },
    /// A module starts to wait.
    Wait { at: u8, action: usize },
}

fn step() -> impl Strategy<Value = DrainStep> {
    prop_oneof![
        3 => (0..4_u8, 0..8_u64).prop_map(|(from, line)| DrainStep::Store { from, line }),
        3 => any::<(bool, bool)>().prop_map(|(by_gpu_home, beyond)| DrainStep::Invalidate { by_gpu_home, beyond }),
        6 => (any::<usize>(), any::<bool>()).prop_map(|(which, forwards)| DrainStep::Take { which, forwards }),
        2 => (0..4_u8, 0..ACTIONS.len()).prop_map(|(at, action)| DrainStep::Wait { at, action }),
    ]
}

/// Message in flight, as seen from both models.
#[derive(Clone, Copy)]
struct InFlight {
    sent: MessageInFlight,
    /// Bit set of waits that include this message.
    waited: u64,
    origin: ModuleId,
    /// Bit set of modules with own sends that end with this message: a store's origin, or homes whose invalidations
    /// were forwarded.
    for_others: u8,
    tickets: Tickets,
}

struct World<P> {
    protocol: P,
    flight: Vec<InFlight>,
    /// Bit set of waits extending to each message's final destination.
    to_the_end: u64,
    drains: Vec<Drains>,
    /// Number of drains that the counts still consider incomplete, per wait.
    missing: BTreeMap<u32, usize>,
}

impl<P: Coherence> World<P> {
    fn new(protocol: P) -> World<P> {
        let drains = (0..4).map(|_| Drains::new(DrainsConfig { stores: 1000 })).collect();
        World { protocol, flight: Vec::new(), to_the_end: 0, drains, missing: BTreeMap::new() }
    }

    fn of(&mut self, module: ModuleId) -> &mut Drains {
        &mut self.drains[usize::from(module.0)]
    }

    fn beyond(from: ModuleId, to: ModuleId) -> bool {
        Machine.gpu_of(from) != Machine.gpu_of(to)
    }

    /// Sends a store from `from`, included in the waits in `waited`.
    fn store(&mut self, from: ModuleId, line: Line, origin: ModuleId, (waited, tickets): (u64, Tickets)) {
        let hierarchical = self.protocol.is_hierarchical();
        let homes = Machine.homes(from, line);
        let Some(to) = homes.next(from, hierarchical) else { return };
        let tickets = self.of(from).post(StoreRoute::of(&Machine, hierarchical, (from, origin), homes), tickets);
        let sent = MessageInFlight { kind: MessageKind::Store, from: Sender::Module(from), to, key: line.0 };
        self.flight.push(InFlight { sent, waited, origin, for_others: 1 << origin.0, tickets });
    }

    fn invalidate(&mut self, from: ModuleId, to: ModuleId) {
        let hop = self.of(from).post_invalidation(Self::beyond(from, to));
        let sent = MessageInFlight { kind: MessageKind::Invalidation, from: Sender::Module(from), to, key: 0 };
        let tickets = Tickets { hop, ..Tickets::default() };
        self.flight.push(InFlight { sent, waited: 0, origin: from, for_others: 0, tickets });
    }

    fn take(&mut self, which: usize, forwards: bool) {
        if self.flight.is_empty() {
            return;
        }
        let item = self.flight.remove(which % self.flight.len());
        let Sender::Module(from) = item.sent.from else { unreachable!("no SM sends here") };
        match item.sent.kind {
            MessageKind::Store => self.take_store(item, from),
            MessageKind::Invalidation => self.take_invalidation(item, from, forwards),
        }
    }

    fn take_store(&mut self, item: InFlight, from: ModuleId) {
        let (at, line) = (item.sent.to, Line(item.sent.key));
        let next = Machine.homes(at, line).next(at, self.protocol.is_hierarchical());
        let (origin, ends) = (item.origin, next.is_none());
        let waited = continuing_waits(&self.protocol, item.waited, self.to_the_end);
        self.store(at, line, origin, (waited, item.tickets));
        let taken = AcknowledgedStore { origin, from, beyond: Self::beyond(from, at), at_home: ends, ends };
        let (hop, end) = taken.pools_to_decrement(&self.protocol);
        self.taken(from, hop, item.tickets.hop);
        if let Some(end) = end {
            self.taken(origin, end, item.tickets.end);
        }
    }

    fn take_invalidation(&mut self, item: InFlight, from: ModuleId, forwards: bool) {
        let at = item.sent.to;
        let is_gpu_home = Self::beyond(from, at) && self.protocol.is_hierarchical();
        if is_gpu_home && forwards {
            self.invalidate(at, ModuleId(at.0 ^ 1));
        }
        for other in &mut self.flight {
            if (Wait::Successor { at, region: 0 }).includes(&Machine, &other.sent) {
                other.waited |= item.waited;
                other.for_others |= item.for_others | 1 << from.0;
            }
        }
        let (ticket, ready) = (item.tickets.hop, Ps(0));
        if !(is_gpu_home && self.of(at).await_invalidations(DrainWaiter::Home { module: from, ticket, ready })) {
            self.taken(from, Pool::of_invalidations(Self::beyond(from, at)), ticket);
        }
    }

    fn wait(&mut self, at: ModuleId, action: Action) {
        let asker = self.missing.len() as u32;
        if asker == 64 {
            return;
        }
        for item in &mut self.flight {
            let of_kind = match action {
                Action::DrainStores(_) | Action::Flush | Action::AwaitStores => item.sent.kind == MessageKind::Store,
                Action::DrainInvalidations(_) => item.sent.kind == MessageKind::Invalidation,
                Action::ForwardStores | Action::Invalidate(_) | Action::Merge { .. } => false,
            };
            let later = of_kind && action.awaits_to_the_end() && item.for_others >> at.0 & 1 != 0;
            let included = later || Wait::Phase { at, action }.includes(&Machine, &item.sent);
            item.waited |= u64::from(included) << asker;
        }
        self.to_the_end |= u64::from(action.awaits_to_the_end()) << asker;
        let pools: Vec<Pool> = Pool::ALL.into_iter().filter(|pool| pool.is_awaited_by(action)).collect();
        self.missing.insert(asker, pools.len());
        pools.into_iter().for_each(|pool| self.of(at).drain(pool, DrainWaiter::Join(asker)));
        self.settle();
    }

    fn taken(&mut self, module: ModuleId, pool: Pool, ticket: Generation) {
        self.of(module).taken(pool, ticket);
        self.settle();
    }

    /// Notifies waiters whose drains have completed. A notified system home may in turn complete further waits.
    fn settle(&mut self) {
        for module in 0..4 {
            for pool in Pool::ALL {
                while let Some(asker) = self.drains[module].pop_drained(pool) {
                    match asker {
                        DrainWaiter::Join(asker) => *self.missing.get_mut(&asker).expect("it waits") -= 1,
                        DrainWaiter::Home { module, ticket, .. } => {
                            self.taken(module, Pool::InvalidationsBeyond, ticket)
                        }
                    }
                }
            }
        }
    }

    fn run(&mut self, step: DrainStep) {
        let gpu_home = Machine.remote_gpu_home(GpuId(1), SHARED);
        match step {
            DrainStep::Store { from, line } => {
                self.store(ModuleId(from), Line(line), ModuleId(from), (0, Tickets::default()));
            }
            DrainStep::Invalidate { by_gpu_home: true, .. } if self.protocol.is_hierarchical() => {
                self.invalidate(gpu_home, ModuleId(gpu_home.0 ^ 1));
            }
            DrainStep::Invalidate { beyond, .. } => {
                let home = Machine.home(ModuleId(0), SHARED);
                self.invalidate(home, if beyond { gpu_home } else { ModuleId(home.0 ^ 1) });
            }
            DrainStep::Take { which, forwards } => self.take(which, forwards),
            DrainStep::Wait { at, action } => self.wait(ModuleId(at), ACTIONS[action]),
        }
    }

    /// Completed waits, according to the marks and according to the counts.
    fn over(&self) -> [Vec<u32>; 2] {
        let waited = self.flight.iter().fold(0, |all, item| all | item.waited);
        let by_marks = self.missing.keys().filter(|&&asker| waited >> asker & 1 == 0);
        let by_counts = self.missing.iter().filter(|(_, missing)| **missing == 0).map(|(asker, _)| asker);
        [by_marks.copied().collect(), by_counts.copied().collect()]
    }
}

fn hold<P: Coherence>(protocol: P, steps: &[DrainStep]) -> Result<(), TestCaseError> {
    let mut world = World::new(protocol);
    for (index, &step) in steps.iter().enumerate() {
        world.run(step);
        let [by_marks, by_counts] = world.over();
        prop_assert_eq!(by_marks, by_counts, "after step {} of {:?}", index, steps);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn counts_say_what_marks_say(steps in prop::collection::vec(step(), 1..60)) {
        hold(Hmg::new(ProtocolOptions::default()), &steps)?;
        hold(Nhcc::new(ProtocolOptions::default()), &steps)?;
    }
}

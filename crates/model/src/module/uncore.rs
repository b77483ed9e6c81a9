//! Parts present only once in a module, next to the SMs and slices: the port to other modules, the operations in flight
//! to these modules, the publisher for stores, the way partition for the caches, and the activity record.

use crate::fabric::port::Port;
use crate::l2::drains::Drains;
use crate::l2::publisher::Publisher;
use crate::l2::way_partition::WayPartition;
use crate::module::config::ModuleSite;
use crate::observe::activity::{Activity, Sample};
use crate::observe::stats::L2Stats;
use crate::observe::value_probe::Contents;
use tombolo_design::ModelInput;
use tombolo_design::placement::PublicationSettings;
use tombolo_types::{GpuId, Ps};

/// Parts present only once in a module. Slices and the controller access them through a mutable view of the module.
pub struct Uncore<D: Contents> {
    /// Partition of the ways in the module's caches.
    pub ways: WayPartition,
    /// Port to and from further modules.
    pub port: Port,
    /// Stores and invalidations in flight to other modules.
    pub(crate) drains: Drains,
    /// Counters for operations on all slices at once.
    pub(crate) stats: L2Stats,
    /// Publisher for stores, if pages are published.
    pub publisher: Option<Box<Publisher<D>>>,
    /// Recorded activity, if requested.
    activity: Option<Box<Activity>>,
    /// Lower bound for the next sample time, of ways or activity.
    due: Ps,
}

impl<D: Contents> Uncore<D> {
    /// An idle uncore.
    pub(crate) fn new(config: &ModuleSite<D>, built: &ModelInput) -> Uncore<D> {
        let machine = &*config.machine;
        let gpu = GpuId(config.module.0 / machine.topology.modules_per_gpu);
        Uncore {
            ways: WayPartition::new(crate::convert::way_partition(machine, &built.capacity)),
            port: Port::new(crate::convert::port(machine, config.layout, gpu)),
            drains: Drains::new(crate::convert::drains(machine)),
            stats: L2Stats::default(),
            publisher: publisher(config, built),
            activity: None,
            due: Ps::NEVER,
        }
    }

    /// Records the module's activity from now on, in windows of length `window`.
    pub(crate) fn record(&mut self, window: Ps) {
        self.activity = Some(Box::new(Activity::new(window)));
        self.plan();
    }

    /// Recorded activity, if requested.
    pub fn activity(&self) -> Option<&Activity> {
        self.activity.as_deref()
    }

    /// Earliest time whose event must be preceded by a sample of ways or activity.
    #[inline]
    pub(crate) fn due(&self) -> Ps {
        self.due
    }

    /// Samples the module before an event at `now`, if its activity is recorded.
    pub(crate) fn observe(&mut self, now: Ps, state: impl FnOnce(&Port) -> Sample) {
        if let Some(activity) = &mut self.activity
            && activity.due() <= now
        {
            activity.take(now, state(&self.port));
        }
        self.plan();
    }

    fn plan(&mut self) {
        let activity = self.activity.as_ref().map_or(Ps::NEVER, |activity| activity.due());
        self.due = self.ways.next_sample().min(activity);
    }

    /// A kernel starts on this module. `queued`: total queueing time for requests at the module's memory.
    pub(crate) fn begin_kernel(&mut self, now: Ps, queued: Ps) {
        self.ways.launch(now, queued);
        self.mark(now);
    }

    /// A kernel has ended here; `idle` is set if it was the last.
    pub(crate) fn end_kernel(&mut self, now: Ps, idle: bool) {
        if idle {
            self.ways.stop();
        }
        self.mark(now);
    }

    fn mark(&mut self, now: Ps) {
        if let Some(activity) = &mut self.activity {
            activity.mark(now);
        }
        self.plan();
    }

    /// Takes all way-partition samples due by `now`. `queued`: total queueing time of requests at memory up to a given
    /// time.
    pub(crate) fn shift_ways(&mut self, now: Ps, queued: impl Fn(Ps) -> Ps) {
        while self.ways.next_sample() <= now {
            self.ways.sample(queued(self.ways.next_sample()));
        }
    }
}

/// The publisher for stores, if pages are published.
fn publisher<D: Contents>(config: &ModuleSite<D>, built: &ModelInput) -> Option<Box<Publisher<D>>> {
    let PublicationSettings { rules, allocates } = built.sharing.publishes?;
    Some(Box::new(Publisher::new(crate::convert::publisher(&config.machine, allocates), rules)))
}

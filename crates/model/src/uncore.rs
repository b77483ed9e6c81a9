//! What a module has once, beside its SMs and its slices: its port to other modules, what is on its way to these, what publishes stores, how the ways of its caches are shared, and a record of what it did over time.

use crate::activity::{Activity, Sample};
use crate::drains::Drains;
use crate::port::Port;
use crate::publisher::Publisher;
use crate::site::Site;
use crate::stats::L2Stats;
use crate::watch::Contents;
use crate::way_partition::WayPartition;
use tombolo_design::Built;
use tombolo_design::placement::Publishes;
use tombolo_types::{GpuId, Ps};

/// What a module has once.
pub struct Uncore<D: Contents> {
    /// How the ways of the module's caches are shared.
    pub ways: WayPartition,
    /// To and from other modules.
    pub port: Port,
    /// Stores and invalidations on their way to other modules.
    pub drains: Drains,
    /// Counters of what is done for all slices at once.
    pub stats: L2Stats,
    /// What publishes stores, where pages are published.
    pub publisher: Option<Box<Publisher<D>>>,
    /// What the module did over time, where that is kept.
    activity: Option<Box<Activity>>,
    /// No later than ways are to be sampled, or the activity.
    due: Ps,
}

impl<D: Contents> Uncore<D> {
    /// Idle.
    pub fn new<C>(site: &Site<C, D>, built: &Built) -> Uncore<D> {
        let machine = &*site.machine;
        let gpu = GpuId(site.module.0 / machine.topology.modules_per_gpu);
        Uncore {
            ways: WayPartition::new(crate::convert::way_partition(machine, &built.capacity)),
            port: Port::new(crate::convert::port(machine, site.layout, gpu)),
            drains: Drains::new(crate::convert::drains(machine)),
            stats: L2Stats::default(),
            publisher: publisher(site, built),
            activity: None,
            due: Ps::NEVER,
        }
    }

    /// Keeps what the module does from here on, in windows of `window`.
    pub fn record(&mut self, window: Ps) {
        self.activity = Some(Box::new(Activity::new(window)));
        self.plan();
    }

    /// What the module did, where that is kept.
    pub fn activity(&self) -> Option<&Activity> {
        self.activity.as_deref()
    }

    /// The time from which on an event is to be preceded by a sample of ways or of the activity.
    #[inline]
    pub fn due(&self) -> Ps {
        self.due
    }

    /// Takes a sample of the module before an event at `now`, where its activity is kept.
    pub fn observe(&mut self, now: Ps, state: impl FnOnce(&Port) -> Sample) {
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

    /// A kernel starts on this module. `queued`: how long requests have queued at its memory.
    pub fn begin_kernel(&mut self, now: Ps, queued: Ps) {
        self.ways.launch(now, queued);
        self.mark(now);
    }

    /// The last kernel here has ended (`idle`), or one of several.
    pub fn end_kernel(&mut self, now: Ps, idle: bool) {
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

    /// Shifts ways as often as has become due by `now`. `queued`: how long requests have queued at memory until a time.
    pub fn shift_ways(&mut self, now: Ps, queued: impl Fn(Ps) -> Ps) {
        while self.ways.next_sample() <= now {
            self.ways.sample(queued(self.ways.next_sample()));
        }
    }
}

/// What publishes, where pages are published.
fn publisher<C, D: Contents>(site: &Site<C, D>, built: &Built) -> Option<Box<Publisher<D>>> {
    let Publishes { rules, allocates } = built.sharing.publishes?;
    Some(Box::new(Publisher::new(crate::convert::publisher(&site.machine, allocates), rules)))
}

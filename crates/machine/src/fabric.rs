//! The fabric joining the GPUs' links.

use crate::quantity::choice;
use crate::quantity::{Clock, Quantity, RecordValue};
use crate::section::section;
use tombolo_types::{GpuId, Ps, Rate};

choice! {
    /// The topology of the fabric that joins GPU links.
    pub enum FabricShape {
        /// A single switch for all GPUs.
        Switch = "switch",
        /// A tree: leaf switches for a few neighbouring GPUs each, joined by a root switch.
        Tree = "tree",
        /// A shared medium from all GPUs, and from an attached host, to a root. `gpu_link.rate` limits the total
        /// traffic towards the root, and separately the total traffic away from the root. Traffic from GPU to GPU
        /// uses both directions.
        Shared = "shared",
        /// A separate link between any two GPUs, with `gpu_link.rate` in each direction.
        Pairs = "pairs",
        /// A ring: each GPU has a link to the next one and to the previous one, and passes packets on. A packet takes
        /// the shorter way.
        Ring = "ring",
        /// A torus: rows of `columns` GPUs, each row and each column a ring. A packet goes along its row first.
        Torus = "torus",
        /// The links in `links`; GPUs pass packets on. A packet takes the fewest links, and of such paths the shortest.
        Links = "links",
    }
}

section! {
    /// The fabric joining the GPUs' links.
    pub struct FabricConfig {
        /// One switch, a tree of switches, one medium for all, links from each to each, or links between some. Source
        /// of the default: as NVSwitch, and as NUMA-aware GPUs, Figure 1.
        shape: FabricShape = FabricShape::Switch,
        /// GPUs per leaf in a tree; it divides the machine's GPU count. Source of the default: not used by one
        /// switch.
        gpus_per_leaf: u8 = 1,
        /// Uplink per leaf, each way, shared by the leaf's GPUs. Source of the default: not used by one switch.
        uplink_rate: Rate = Rate::INFINITE,
        /// One way on an uplink plus the switch at the end, without queueing or serialisation. From leaf to leaf it
        /// is added twice to `gpu_link.latency`. Source of the default: not used by one switch.
        uplink_latency: Ps = Ps::ZERO,
        /// Uplinks per leaf in a tree, each of `uplink_rate`. All packets from one GPU to another take a single uplink of
        /// a leaf. Source of the default: one root switch.
        uplinks: u8 = 1,
        /// GPUs in a row of a torus; it divides the machine's GPU count. Source of the default: not used by one switch.
        columns: u8 = 1,
        /// Links of the shape "links". Source of the default: not used by one switch.
        links: LinkList = LinkList::default(),
    }
}

impl FabricConfig {
    /// The leaf in a tree to which `gpu` is attached; 0 for any other fabric.
    pub fn leaf_of(&self, gpu: GpuId) -> u8 {
        match self.shape {
            FabricShape::Tree => gpu.0 / self.gpus_per_leaf,
            FabricShape::Switch
            | FabricShape::Shared
            | FabricShape::Pairs
            | FabricShape::Ring
            | FabricShape::Torus
            | FabricShape::Links => 0,
        }
    }

    /// The one-way latency added to `gpu_link.latency` by the uplinks between two GPUs.
    pub fn detour(&self, from: GpuId, to: GpuId) -> Ps {
        if self.leaf_of(from) == self.leaf_of(to) { Ps::ZERO } else { self.uplink_latency + self.uplink_latency }
    }
}

/// A link between two GPUs, with its rate in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedLink {
    /// The GPUs.
    pub ends: (GpuId, GpuId),
    /// Rate of each direction.
    pub rate: Rate,
    /// Latency of each direction, without queueing or serialisation.
    pub latency: Ps,
}

/// Links between GPUs, as a file lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkList(pub Vec<ListedLink>);

impl LinkList {
    /// A copy of the list with every rate converted by `rate`.
    #[must_use]
    pub fn at(&self, rate: impl Fn(Rate) -> Rate) -> LinkList {
        LinkList(self.0.iter().map(|link| ListedLink { rate: rate(link.rate), ..*link }).collect())
    }
}

impl Quantity for LinkList {
    const EXPECTED: &'static str = "a list of links, each of two GPUs, a rate and a latency, such as \
        [[0, 1, \"450GB/s\", \"500ns\"]] (--set fabric.links=0:1:450GB/s:500ns,1:2:450GB/s:500ns)";

    fn parse(text: &str, clock: Clock) -> Option<LinkList> {
        let link = |text: &str| {
            let [from, to, rate, latency] = text.split(':').map(str::trim).collect::<Vec<_>>().try_into().ok()?;
            let gpu = |text: &str| text.parse().ok().map(GpuId);
            let (ends, rate) = ((gpu(from)?, gpu(to)?), Rate::parse(rate, clock)?);
            Some(ListedLink { ends, rate, latency: Ps::parse(latency, clock)? })
        };
        let all = text.split(',').filter(|text| !text.trim().is_empty());
        all.map(link).collect::<Option<Vec<ListedLink>>>().map(LinkList)
    }

    fn print(&self) -> RecordValue {
        let link = |ListedLink { ends: (from, to), rate, latency }: &ListedLink| {
            format!("{}:{}:{}:{}", from.0, to.0, rate.print(), latency.print())
        };
        RecordValue::Text(self.0.iter().map(link).collect::<Vec<_>>().join(","))
    }
}

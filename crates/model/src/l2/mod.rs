//! L2 caches: slices of lines (`slice`) and clients and homes of blocks (`block`), with their arrays, registers,
//! directories and queues.

pub(crate) mod address_map;
pub(crate) mod backend;
pub(crate) mod block;
pub(crate) mod cache;
pub(crate) mod credits;
pub(crate) mod departure;
pub(crate) mod directory;
pub(crate) mod drains;
pub(crate) mod group;
pub(crate) mod mshr;
pub(crate) mod outstanding;
pub(crate) mod partitioning;
pub(crate) mod posted;
pub(crate) mod publisher;
pub(crate) mod set_index;
pub(crate) mod slice;
pub(crate) mod way_partition;

pub use address_map::AddressMap;
pub use backend::{L2Design, L2Slice};
pub use block::{BlockDesign, BlockStats};
pub use cache::{BulkClass, Cache, CacheConfig, IndexFunction, Replacement, Ways};
pub use credits::{Credits, Generation};
pub use drains::{Drains, DrainsConfig};
pub use mshr::{Mshr, MshrConfig};
pub use outstanding::{DrainWaiter, Tickets};
pub use partitioning::{SlicePartition, SmPartition, least_delay};
pub use publisher::{DrainCause, PublicationStats};
pub use way_partition::{LocalWays, WayPartition};

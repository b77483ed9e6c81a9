//! Common vocabulary of all crates: time, sizes, rates and energies, addresses, ids, scopes, promises, the text form of
//! values in files, and the stream of warp instructions that a workload produces and an SM consumes.
//!
//! Only values and their text: no code in this crate simulates anything. Read [`stream`] next, then the crates `protocol` and
//! `engine`.

pub mod address;
pub mod array;
pub mod device_set;
pub mod devices;
pub mod directory;
pub mod energy;
pub mod host;
pub mod id;
pub mod key;
pub mod promise;
pub mod quantity;
pub mod scope;
pub mod size;
pub mod stop;
pub mod stream;
pub mod time;

pub use address::{Line, LineSize, Mask, Page, Sectors};
pub use array::{ArrayInfo, HostPhase};
pub use device_set::{DeviceId, DeviceSet, GpuSet, ModuleSet};
pub use devices::LaunchDevices;
pub use directory::{StoreAllocation, Tracks};
pub use energy::Attojoules;
pub use host::{HostAccess, HostAccessKind};
pub use id::{ComponentId, GpuId, ModuleId, SmId};
pub use key::Key;
pub use promise::Promise;
pub use scope::{Order, Scope, Semantics};
pub use size::{Bytes, Interval, Rate, Serializer};
pub use stop::StopFlag;
pub use time::{Clock, Ps};

//! The names used by nearly every program: `use tombolo_workload::prelude::*;`.

pub use crate::bench::{
    ADDRESS, Benchmark, DIVISION, Instance, LayOut, Request, Workload, WorkloadError, check_indices, compare,
    each_active, map_active, require,
};
pub use crate::noise;
pub use crate::parameter::{Parameter, ParameterKind, ParameterValues};
pub use crate::record::{Host, RecordError, Trips};
pub use crate::simt::*;
pub use crate::{arrays, parameters, program};
pub use tombolo_types::{Order, Scope};

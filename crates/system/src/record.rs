//! A run's result in the format that scripts read; crate `metrics` declares each counter.

pub use tombolo_metrics::{
    DramRecord, GpuRecord, HostRecord, KernelRecord, L1Record, L2Record, LinkRecord, LocalWaysRecord,
    MemoryCacheRecord, ModuleRecord, RunRecord, TrafficRecord, WaysRecord,
};

//! Costs for sharing memory between GPUs: page migrations, and copies between GPUs.

use serde::{Deserialize, Serialize};

metrics! {
    /// Page migrations and faults.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct PagingRecord {
        faults: u64 = "page faults", "", "Accesses that a GPU or the host was not to make, once a page and each at a time.";
        #[serde(default)]
        host_faults: u64 = "page faults of the host", "", "Those that the host told of.";
        batches: u64 = "batches of faults", "", "Batches of faults that the driver served.";
        migrations: u64 = "pages migrated", "", "Pages that faults moved or copied.";
        migrated_bytes: u64 = "bytes migrated", "B", "Bytes of pages that faults moved or copied.";
        prefetched_bytes: u64 = "bytes prefetched", "B", "Bytes of pages that were moved before a kernel.";
        shootdowns: u64 = "shootdowns", "", "Times that a page was unmapped where it was in use.";
        evictions: u64 = "pages evicted", "", "Pages that went to the host to make room.";
        pins: u64 = "pages pinned", "", "Times that a page that thrashed was pinned.";
        faults_s: f64 = "time in faults", "s", "While faults were being served, with what they moved.";
    }
}

metrics! {
    /// Copies between GPUs after kernels, or between the host and GPUs.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct CopiesRecord {
        calls: u64 = "copies between GPUs", "", "Calls that copied a range from GPU to GPU, or between the host and a GPU.";
        bytes: u64 = "bytes copied between GPUs", "B", "Bytes copied from GPU to GPU, or between the host and GPUs, without headers.";
        exposed_s: f64 = "exposed copies", "s", "While the program waited for copies, or for pages moved before a kernel.";
    }
}

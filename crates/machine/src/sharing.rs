//! Memory sharing between GPUs: page migration, copy engines, and publication units for stores.

use crate::section::section;
use tombolo_types::{Bytes, Ps, Rate};

section! {
    /// Page migration between memories: the driver's fault service and its costs. Read by designs whose pages move.
    pub struct PagingConfig {
        /// From the first fault that finds an idle driver to the end of its work on a batch, without page moves and
        /// without shootdowns. Assumed: between at least 10 us (NVIDIA on Pascal, GTC Japan 2016) and 45 us
        /// (Ganguly et al., ISCA 2019).
        service: Ps = Ps::from_ns(20_000),
        /// Faults per batch, at most. Source of the default: NVIDIA's open driver, uvm_gpu_replayable_faults.c.
        batch: u32 = 256,
        /// Time for the driver to have a page unmapped, besides the messages and their waits. Assumed: no figure is
        /// published; 1 to 10 us are worth a sweep.
        shootdown: Ps = Ps::from_ns(2_000),
        /// Page moves within `thrashing_time` that count as thrashing. Source of the default: NVIDIA's open driver,
        /// uvm_perf_thrashing.c.
        thrashing_moves: u32 = 3,
        /// See `thrashing_moves`. Source of the default: NVIDIA's open driver, uvm_perf_thrashing.c.
        thrashing_time: Ps = Ps::from_ns(500_000),
        /// Time for which a thrashing page stays in place, and is used remotely. Source of the default: NVIDIA's
        /// open driver, uvm_perf_thrashing.c: 300 times 500 us.
        pinned_time: Ps = Ps::from_ns(150_000_000),
        /// Pages between host memory and one module, each way. Source of the default: PCI Express 3, 16 lanes.
        host_rate: Rate = Rate(15_750_000_000),
    }
}

section! {
    /// The engines that copy memory from GPU to GPU.
    pub struct CopyConfig {
        /// From a copy call to its first read. Source of the default: Tartan, dgx-1_packet.txt: 10 us for a small
        /// copy over NVLink, 20 us over PCI Express.
        call: Ps = Ps::from_ns(10_000),
        /// Bytes per packet of a copy, at most; each has a header. Source of the default: Intel AN 708, the payload
        /// that PCI Express devices usually negotiate.
        payload: Bytes = Bytes(256),
        /// Bytes that an engine reads and sends at a time. Assumed: a few packets.
        chunk: Bytes = Bytes(4096),
    }
}

section! {
    /// The unit that publishes a module's stores to pages with several subscribers. Read by designs that publish
    /// pages.
    pub struct PublicationConfig {
        /// Lines held by a module's write queue. One less is the high watermark: as soon as the queue reaches it,
        /// the least recently added line leaves. Source of the default: GPS, Table 1.
        entries: u32 = 512,
        /// Pages held by the TLB of the queue, whose entries name every subscriber. Source of the default: GPS,
        /// Table 1.
        tlb_entries: u32 = 32,
        /// Ways per set of it. Source of the default: GPS, Table 1.
        tlb_ways: u32 = 8,
        /// Concurrent walks of the subscriber table. Assumed: equal to a GPU's conventional page table walks.
        walkers: u32 = 8,
        /// A walk of it, with five levels like a conventional table. Source of the default: Jia et al., "Dissecting
        /// the NVIDIA Volta GPU Architecture", 2018: 574 cycles at 1.38 GHz for a walk of the conventional table.
        walk_latency: Ps = Ps::from_ns(416),
        /// Time for the driver to read the GPUs' accesses from a tracked period, besides messages and shootdowns.
        /// Assumed: no figure has been published; 0 to 100 us are worth a sweep.
        stop: Ps = Ps::from_ns(10_000),
    }
}

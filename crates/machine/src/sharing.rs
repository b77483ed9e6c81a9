//! What shares memory between GPUs: pages that move, engines that copy, and units that publish what is stored.

use crate::section::section;
use tombolo_types::{Bytes, Ps, Rate};

section! {
    /// Pages that move between memories: who serves faults, and what that costs. Read by designs whose pages move.
    pub struct PagingConfig {
        /// From the first fault that finds the driver idle to the end of its work on a batch, without what moves and without
        /// shootdowns. Assumed: between at least 10 us (NVIDIA on Pascal, GTC Japan 2016) and 45 us (Ganguly et al., ISCA 2019).
        service: Ps = Ps::from_ns(20_000),
        /// Faults of one batch, at most. Source of the default: NVIDIA's open driver, uvm_gpu_replayable_faults.c.
        batch: u32 = 256,
        /// What the driver takes to have a page unmapped, beside the messages and what they wait for. Assumed: no figure is
        /// published; 1 to 10 us are worth a sweep.
        shootdown: Ps = Ps::from_ns(2_000),
        /// Moves of a page within `thrashing_time` that make it thrash. Source of the default: NVIDIA's open driver,
        /// uvm_perf_thrashing.c.
        thrashing_moves: u32 = 3,
        /// See `thrashing_moves`. Source of the default: NVIDIA's open driver, uvm_perf_thrashing.c.
        thrashing_time: Ps = Ps::from_ns(500_000),
        /// How long a page that thrashes stays where it is, and is used from afar. Source of the default: NVIDIA's open
        /// driver, uvm_perf_thrashing.c: 300 times 500 us.
        pinned_time: Ps = Ps::from_ns(150_000_000),
        /// Pages between the host's memory and one module, each way. Source of the default: PCI Express 3, 16 lanes.
        host_rate: Rate = Rate(15_750_000_000),
    }
}

section! {
    /// What copies memory from GPU to GPU.
    pub struct CopyConfig {
        /// From the call of a copy to its first read. Source of the default: Tartan, dgx-1_packet.txt: 10 us for a small
        /// copy over NVLink, 20 us over PCI Express.
        call: Ps = Ps::from_ns(10_000),
        /// Bytes of a packet of a copy, at most; each has a header. Source of the default: Intel AN 708, the payload that PCI
        /// Express devices usually agree on.
        payload: Bytes = Bytes(256),
        /// Bytes that an engine has read and sent at a time. Assumed: a few packets.
        chunk: Bytes = Bytes(4096),
    }
}

section! {
    /// What publishes what a module stores to pages with several subscribers. Read by designs that publish pages.
    pub struct PublicationConfig {
        /// Lines that the write queue of a module holds. One less is the high watermark: as soon as so many are in it, the
        /// least recently added leaves. Source of the default: GPS, Table 1.
        entries: u32 = 512,
        /// Pages that the TLB of the queue holds, whose entries name every subscriber. Source of the default: GPS, Table 1.
        tlb_entries: u32 = 32,
        /// Ways of a set of it. Source of the default: GPS, Table 1.
        tlb_ways: u32 = 8,
        /// Walks of the table of subscribers at a time. Assumed: as many as of a GPU's conventional page table.
        walkers: u32 = 8,
        /// A walk of it, which has five levels as a conventional one. Source of the default: Jia et al., "Dissecting the
        /// NVIDIA Volta GPU Architecture", 2018: 574 cycles at 1.38 GHz for a walk of the conventional table.
        walk_latency: Ps = Ps::from_ns(416),
        /// What the driver takes to read what GPUs have accessed while it was tracked, beside messages and shootdowns. Assumed:
        /// nobody has published one; 0 to 100 us are worth a sweep.
        stop: Ps = Ps::from_ns(10_000),
    }
}

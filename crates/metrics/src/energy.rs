//! Energy in the memory subsystem.

metrics! {
    /// Picojoules by component.
    #[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(default)]
    pub struct Energy {
        l1i: f64 = "L1 instruction energy", "pJ", "Fetches from L1 instruction caches.";
        l1: f64 = "L1 energy", "pJ", "Moving bits between L1 data caches and registers.";
        scratchpad: f64 = "scratchpad energy", "pJ", "Passes of the scratchpads.";
        l2: f64 = "L2 energy", "pJ", "Lookups of L2 slices and, where the machine states it, fills and write-backs.";
        l3: f64 = "L3 energy", "pJ", "Lookups of caches in front of memory.";
        crossbar: f64 = "crossbar energy", "pJ", "Messages between SMs and L2 slices, and between these and memory.";
        dram: f64 = "memory energy", "pJ", "Moving bits between memories and their dies.";
        module_links: f64 = "module link energy", "pJ", "Moving bits between the modules of a GPU.";
        gpu_links: f64 = "GPU link energy", "pJ", "Moving bits between GPUs, links and switch together.";
    }
}

impl Energy {
    /// Sum over all components.
    pub fn total(&self) -> f64 {
        let Energy { l1i, l1, scratchpad, l2, l3, crossbar, dram, module_links, gpu_links } = *self;
        l1i + l1 + scratchpad + l2 + l3 + crossbar + dram + module_links + gpu_links
    }
}

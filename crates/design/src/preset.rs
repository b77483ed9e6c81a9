//! The shipped designs, embedded in the program. A new design needs a file and a line in this list.

use tombolo_machine::preset::Preset;

macro_rules! presets {
    ($($name:literal),+ $(,)?) => {
        &[$(Preset { name: $name, text: include_str!(concat!("../presets/", $name, ".toml")) }),+]
    };
}

/// Designs, in list order.
pub(crate) const DESIGNS: &[Preset] = presets!(
    "no-remote-caching",
    "software-flat",
    "software-hierarchical",
    "nhcc",
    "hmg",
    "viper",
    "viper-cached",
    "cpelide",
    "cpelide-home-aware",
    "monolithic",
    "hmg-chiplet",
    "hmg-chiplet-write-back",
    "ideal",
    "v100",
    "h100",
    "mi300a",
    "numa-traditional",
    "numa-memory-side",
    "numa-static-halves",
    "numa-coherent",
    "numa-coherent-write-through",
    "numa-no-invalidation",
    "numa-aware-cache",
    "numa-turning-links",
    "numa-aware",
    "peer",
    "unified-memory",
    "unified-memory-hints",
    "remote-demand-loads",
    "memcpy",
    "memcpy-needed",
    "memcpy-shared",
    "infinite-bandwidth",
    "gps",
    "gps-all-to-all",
    "gps-on-read",
    "zero-copy",
    "memcpy-host",
    "unified-memory-cuda6",
    "unified-memory-host",
    "umh"
);

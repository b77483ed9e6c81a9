//! Decides if the engine announces a run's events to the partitions ahead of time. Partitions then prefetch the
//! necessary data into the host's caches. For machines small enough to fit into the host's caches, hints cost more than
//! the saved misses. No simulation result depends on the choice.

use std::fs;
use std::path::Path;
use tombolo_machine::MachineConfig;
use tombolo_model::convert;

/// Host bytes per simulated tag or directory entry: line, state, and bytes in a set's hashes and ages. Source: the tag
/// arrays in `model`, which use 18 to 26.
const ENTRY: u64 = 24;

/// Second-level cache size per core in bytes, assumed if the operating system reports none. Source: assumed; server
/// cores since 2017 have 512 KiB to 2 MiB.
const USUAL: u64 = 1 << 20;

/// Path under which Linux describes the first core's caches.
const CACHES: &str = "/sys/devices/system/cpu/cpu0/cache";

/// True if the machine's simulated state exceeds the caches of a host core: only then do hints save time.
pub(crate) fn are_useful(machine: &MachineConfig) -> bool {
    simulated_bytes(machine) > core_cache(Path::new(CACHES)).unwrap_or(USUAL)
}

/// Approximate host bytes for a machine's simulated arrays: L1s, L2 slices, directories and memory-side caches.
fn simulated_bytes(machine: &MachineConfig) -> u64 {
    let of_set = |sets: u32, ways: u32| u64::from(sets) * u64::from(ways);
    let (l1, l2, directory) = (convert::l1(machine), convert::l2_slice(machine), convert::directory_slice(machine));
    let slice = of_set(l2.sets, l2.ways) + of_set(directory.sets, directory.ways);
    let sms = of_set(l1.sets, l1.ways) * u64::from(machine.topology.sms_per_module);
    let behind = machine.memory_cache.bytes.0 / machine.line.bytes();
    let module = sms + slice * u64::from(machine.l2.slices) + behind;
    module * machine.topology.modules() as u64 * ENTRY
}

/// Second-level cache size in bytes, from a folder that describes a core's caches in Linux format.
fn core_cache(caches: &Path) -> Option<u64> {
    let told = |cache: &Path, what| fs::read_to_string(cache.join(what)).ok();
    let second = |cache: &Path| told(cache, "level").is_some_and(|level| level.trim() == "2");
    let cache = fs::read_dir(caches).ok()?.flatten().map(|entry| entry.path()).find(|cache| second(cache))?;
    let size = told(&cache, "size")?;
    size.trim().strip_suffix('K')?.parse().ok().map(|kilobytes: u64| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(settings: &[(&str, &str)]) -> MachineConfig {
        let mut described = tombolo_machine::machine("hmg-4x4").expect("it ships");
        settings.iter().for_each(|(path, value)| described.set(path, value).expect("a key"));
        described.check().expect("it fits")
    }

    #[test]
    fn a_machine_of_full_size_exceeds_a_cache_and_a_small_one_does_not() {
        assert!(simulated_bytes(&machine(&[])) > 8 << 20, "{} bytes", simulated_bytes(&machine(&[])));
        let small = [("topology.sms_per_module", "1"), ("l2.bytes", "128KB"), ("directory.entries", "256")];
        assert!(simulated_bytes(&machine(&small)) < 1 << 20, "{} bytes", simulated_bytes(&machine(&small)));
    }

    #[test]
    fn sizes_are_read_as_linux_writes_them() {
        let folder = std::env::temp_dir().join(format!("tombolo-caches-{}", std::process::id()));
        for (index, level, size) in [("index0", "1\n", "48K\n"), ("index2", "2\n", "1024K\n")] {
            fs::create_dir_all(folder.join(index)).expect("a folder for the test");
            fs::write(folder.join(index).join("level"), level).expect("a file for the test");
            fs::write(folder.join(index).join("size"), size).expect("a file for the test");
        }
        assert_eq!(core_cache(&folder), Some(1 << 20));
        assert_eq!(core_cache(&folder.join("index0")), None);
        fs::remove_dir_all(&folder).expect("what the test has made");
    }
}

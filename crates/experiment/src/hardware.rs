//! What is computed from a machine alone. Source: HMG, sections V-A and VII-C.

use tombolo_machine::MachineConfig;

/// Names below `hardware.`.
pub(crate) const NAMES: [&str; 5] = [
    "directory_sharers",
    "directory_bits_per_entry",
    "directory_storage_kb",
    "directory_share_of_l2_percent",
    "directory_reach_mb",
];

/// The value of `name`, one of [`NAMES`].
pub(crate) fn value(machine: &MachineConfig, name: &str) -> Option<f64> {
    let storage = machine.directory_storage_bytes() as f64;
    Some(match name {
        "directory_sharers" => f64::from(machine.directory_sharers()),
        "directory_bits_per_entry" => f64::from(machine.directory_bits_per_entry()),
        // The paper counts 1000 bytes a kilobyte here: 12288 entries of 55 bits are 84480 bytes.
        "directory_storage_kb" => storage / 1000.0,
        "directory_share_of_l2_percent" => 100.0 * storage / machine.l2.bytes as f64,
        "directory_reach_mb" => machine.directory_reach_bytes() as f64 / f64::from(1 << 20),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_value() {
        let machine = tombolo_machine::machine("hmg-4x4").unwrap().check().unwrap();
        assert!(NAMES.iter().all(|name| value(&machine, name).is_some_and(|value| value > 0.0)));
        assert_eq!(value(&machine, "directory_bits"), None);
    }
}

//! What is computed from a machine alone, or from it and what a paper states of its workloads. Source: HMG, sections
//! V-A and VII-C; NUMA-GPU, figure 2; CPElide, section III-A.

use crate::spec::StatedWorkload;
use tombolo_machine::MachineConfig;
use tombolo_protocol::elision::TableConfig;

/// Names below `hardware.`.
pub(crate) const NAMES: [&str; 8] = [
    "directory_sharers",
    "directory_bits_per_entry",
    "directory_storage_kb",
    "directory_share_of_l2_percent",
    "directory_reach_mb",
    "chiplet_table_row_bits",
    "chiplet_table_bytes",
    OF_WORKLOADS,
];

/// The one of [`NAMES`] that also needs what the paper states of its workloads.
pub(crate) const OF_WORKLOADS: &str = "workloads_that_fill_it_percent";

/// The value of `name`, one of [`NAMES`].
pub(crate) fn value(machine: &MachineConfig, stated: &[StatedWorkload], name: &str) -> Option<f64> {
    let storage = machine.directory_storage_bytes() as f64;
    Some(match name {
        "directory_sharers" => f64::from(machine.directory_sharers()),
        "directory_bits_per_entry" => f64::from(machine.directory_bits_per_entry()),
        "directory_storage_kb" => storage / 1024.0,
        "directory_share_of_l2_percent" => 100.0 * storage / machine.l2.bytes as f64,
        "directory_reach_mb" => machine.directory_reach_bytes() as f64 / f64::from(1 << 20),
        "chiplet_table_row_bits" => f64::from(row_bits(machine)),
        "chiplet_table_bytes" => f64::from(row_bits(machine) * u32::from(TableConfig::default().rows)) / 8.0,
        // A workload fills a machine where its CTAs exceed the SMs. Source: NUMA-GPU, figure 2.
        OF_WORKLOADS if !stated.is_empty() => {
            let filling = stated.iter().filter(|one| one.ctas > machine.topology.sms() as u64).count();
            100.0 * filling as f64 / stated.len() as f64
        }
        _ => return None,
    })
}

/// Bits of a row of CPElide's table: a base address of 4 bytes, two bounds of 28 bits for each chiplet, a mode of one bit and
/// two bits for each chiplet. Source: CPElide, section III-A; that the 28 bytes of ranges are bounds is ours.
fn row_bits(machine: &MachineConfig) -> u32 {
    let chiplets = machine.topology.modules() as u32;
    32 + 2 * 28 * chiplets + 1 + 2 * chiplets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_value() {
        let machine = tombolo_machine::machine("hmg-4x4").unwrap().check().unwrap();
        let stated = [StatedWorkload { label: "one".to_owned(), ctas: 513, footprint_mb: 1 }];
        assert!(NAMES.iter().all(|name| value(&machine, &stated, name).is_some_and(|value| value > 0.0)));
        assert_eq!(value(&machine, &stated, "directory_bits"), None);
    }

    #[test]
    fn a_workload_fills_a_machine_with_fewer_sms_than_it_has_ctas() {
        let machine = tombolo_machine::machine("hmg-4x4").unwrap().check().unwrap();
        let stated = [512, 513, 100_000, 1].map(|ctas| StatedWorkload { label: String::new(), ctas, footprint_mb: 1 });
        assert_eq!(value(&machine, &stated, "workloads_that_fill_it_percent"), Some(50.0));
        assert_eq!(value(&machine, &[], "workloads_that_fill_it_percent"), None, "nothing is stated");
    }
}

//! Quantities computed from a machine alone, or from a machine and the paper's statements about its workloads. Source:
//! HMG, sections V-A and VII-C; NUMA-GPU, figure 2; CPElide, section III-A; GPS, figure 3, table 1 and section 5.2;
//! UMH, sections 4.1.2, 5 and 6.2.

use crate::spec::StatedWorkload;
use tombolo_machine::MachineConfig;
use tombolo_protocol::elision::TableConfig;
use tombolo_types::Rate;

/// Names below `hardware.`.
pub(crate) const NAMES: [&str; 26] = [
    "directory_sharers",
    "directory_bits_per_entry",
    "directory_storage_kb",
    "directory_share_of_l2_percent",
    "directory_reach_mb",
    "chiplet_table_row_bits",
    "chiplet_table_bytes",
    "gpu_link_gb_per_s",
    "gpu_memory_gb_per_s",
    "write_queue_bytes",
    "published_page_entry_bits",
    "access_bitmap_kb",
    "stack_directory_tag_bits",
    "stack_directory_entry_bits",
    "stack_directory_mib",
    "stack_directory_ns",
    "stack_directory_mm2",
    "host_directory_entry_bits",
    "host_directory_entry_bits_with_cpu",
    "host_directory_mib",
    "llc_directory_kib",
    "mask_percent",
    "block_cycles",
    "synchronised_kib",
    "synchronised_kib_with_l1s",
    OF_WORKLOADS,
];

/// Name among [`NAMES`] whose value also needs the paper's statements about its workloads.
pub(crate) const OF_WORKLOADS: &str = "workloads_that_fill_it_percent";

/// Returns the value for `name`, an element in [`NAMES`].
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
        "gpu_link_gb_per_s" => gigabytes_per_second(machine.gpu_link.rate) * DIRECTIONS,
        "gpu_memory_gb_per_s" => gigabytes_per_second(machine.dram.rate) * f64::from(machine.topology.modules_per_gpu),
        "write_queue_bytes" => (u64::from(machine.publication.entries) * (machine.line.bytes() + TAG)) as f64,
        "published_page_entry_bits" => f64::from(published_page_entry_bits(machine)),
        "access_bitmap_kb" => (TRACKED / machine.page_bytes) as f64 / f64::from(u8::BITS) / 1024.0,
        // A workload fills a machine if its CTAs exceed the SMs. Source: NUMA-GPU, figure 2.
        OF_WORKLOADS if !stated.is_empty() => {
            let filling = stated.iter().filter(|one| one.ctas > machine.topology.sms() as u64).count();
            100.0 * filling as f64 / stated.len() as f64
        }
        _ => return of_stacks(machine, name),
    })
}

/// Returns the value for `name` if the name applies to machines with stacked memories as a cache for host memory.
fn of_stacks(machine: &MachineConfig, name: &str) -> Option<f64> {
    let stack = machine.stack.as_ref()?;
    let topology = &machine.topology;
    let (gpus, l1s) = (u64::from(topology.gpus), topology.sms() as u64 / u64::from(topology.gpus));
    let (own, host) = (machine.stack_directory_cost()?, machine.host_directory_cost(false)?);
    Some(match name {
        "stack_directory_tag_bits" => own.tag_bits.into(),
        "stack_directory_entry_bits" => own.bits.into(),
        "stack_directory_mib" => own.bytes() as f64 / MIB,
        "stack_directory_ns" => own.sram()?.nanoseconds,
        "stack_directory_mm2" => own.sram()?.square_millimetres,
        "host_directory_entry_bits" => host.bits.into(),
        "host_directory_entry_bits_with_cpu" => machine.host_directory_cost(true)?.bits.into(),
        "host_directory_mib" => host.bytes() as f64 / MIB,
        "llc_directory_kib" => machine.llc_directory_cost()?.bytes() as f64 / 1024.0,
        "mask_percent" => 100.0 / (8 * stack.mask_bytes) as f64,
        "block_cycles" => (stack.block_bytes / BYTES_A_CYCLE) as f64,
        // For each GPU, a block moves from the L2 to the stack, and from the stack to the host. Source: UMH, section
        // 6.2.
        "synchronised_kib" => (gpus * 2 * stack.block_bytes) as f64 / 1024.0,
        "synchronised_kib_with_l1s" => (gpus * (2 + l1s) * stack.block_bytes) as f64 / 1024.0,
        _ => return None,
    })
}

const MIB: f64 = (1_u64 << 20) as f64;
/// Bytes transferred by a link per cycle. Source: UMH, section 5.
const BYTES_A_CYCLE: u64 = 16;

/// Returns the bits in a row of CPElide's table: a base address with 4 bytes, two 28-bit bounds per chiplet, a mode
/// bit, and two bits per chiplet. Source: CPElide, section III-A; treating the 28 range bytes as bounds is our
/// interpretation.
fn row_bits(machine: &MachineConfig) -> u32 {
    let chiplets = machine.topology.modules() as u32;
    32 + 2 * 28 * chiplets + 1 + 2 * chiplets
}

/// Directions per link: hardware surveys add up both directions. Source: NVIDIA's "300 GB/s" for a V100, six NVLinks
/// with 25 GB/s in each direction.
const DIRECTIONS: f64 = 2.0;
/// Bits in a virtual and in a physical address. Source: GPS, Table 1.
const ADDRESSES: (u32, u32) = (49, 47);
/// Bytes in a write-queue entry besides its line: 135 in all. Source: GPS, Table 1.
const TAG: u64 = 7;
/// Memory bytes covered by an access tracker with a bit per page: 32 GB. Source: GPS, section 5.2.
const TRACKED: u64 = 32 << 30;

/// Returns a rate in decimal gigabytes per second.
fn gigabytes_per_second(rate: Rate) -> f64 {
    if rate.is_infinite() { f64::INFINITY } else { rate.0 as f64 / 1e9 }
}

/// Returns the bits in an entry of GPS's page table: the virtual page, and the physical page on each remote GPU.
/// Source: GPS, section 5.2.
fn published_page_entry_bits(machine: &MachineConfig) -> u32 {
    let page = machine.page_bytes.ilog2();
    let others = u32::from(machine.topology.gpus).saturating_sub(1);
    ADDRESSES.0.saturating_sub(page) + others * ADDRESSES.1.saturating_sub(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str) -> MachineConfig {
        tombolo_machine::machine(name).unwrap().check().unwrap()
    }

    #[test]
    fn an_entry_of_a_published_page_grows_with_the_gpus() {
        let bits = |name| value(&machine(name), &[], "published_page_entry_bits");
        assert_eq!((bits("gps-4-pcie3"), bits("gps-16-pcie6")), (Some(126.0), Some(498.0)));
    }

    #[test]
    fn rates_are_those_of_a_gpu_and_both_ways_of_its_link() {
        let rate = |of: &str| value(&machine("gps-4-nvlink"), &[], of);
        assert_eq!((rate("gpu_link_gb_per_s"), rate("gpu_memory_gb_per_s")), (Some(300.0), Some(900.0)));
    }

    #[test]
    fn every_name_has_a_value() {
        let stated = [StatedWorkload { label: "one".to_owned(), ctas: 513, footprint_mb: 1 }];
        let (plain, stacked) = (machine("hmg-4x4"), machine("umh-4-pcie"));
        assert!(NAMES.iter().all(|name| value(&stacked, &stated, name).is_some_and(|value| value > 0.0)));
        let of_stacks = |name: &&&str| value(&plain, &stated, name).is_none();
        assert_eq!(NAMES.iter().filter(of_stacks).count(), 13);
        assert_eq!(value(&stacked, &stated, "directory_bits"), None);
    }

    #[test]
    fn a_workload_fills_a_machine_with_fewer_sms_than_it_has_ctas() {
        let machine = machine("hmg-4x4");
        let stated = [512, 513, 100_000, 1].map(|ctas| StatedWorkload { label: String::new(), ctas, footprint_mb: 1 });
        assert_eq!(value(&machine, &stated, "workloads_that_fill_it_percent"), Some(50.0));
        assert_eq!(value(&machine, &[], "workloads_that_fill_it_percent"), None, "nothing is stated");
    }
}

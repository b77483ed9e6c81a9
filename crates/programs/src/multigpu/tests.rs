//! Tests that hold for every program written for several GPUs.

use crate::small::{request, small};
use crate::variants::VARIANTS;
use crate::{find, list};
use std::collections::BTreeMap;
use tombolo_types::stream::Program;
use tombolo_workload::bench::{Mode, Request, Workload, record};
use tombolo_workload::record::{Host, RecordOptions};
use tombolo_workload::simt::{Backing, Memory};

fn programs() -> impl Iterator<Item = &'static dyn Workload> {
    list().iter().copied().filter(|workload| workload.partitioned_by_gpus())
}

/// Small instances and variants of all programs, each with its workload.
fn requests() -> impl Iterator<Item = (&'static dyn Workload, Request)> {
    let variants = VARIANTS.iter().filter_map(|(name, given)| Some((find(name).ok()?, *given)));
    let variants = variants.filter(|(workload, _)| workload.partitioned_by_gpus());
    programs().map(|workload| (workload, small(workload))).chain(variants.map(|(of, given)| (of, request(of, given))))
}

/// Final array contents after a run on `gpus` GPUs, by name, once the result is verified.
fn results(workload: &dyn Workload, request: &Request, gpus: u8) -> BTreeMap<String, Vec<u64>> {
    let mut memory = Memory::new(Backing::Real);
    let mut request = request.clone().with_gpus(gpus);
    let instance = workload.lay_out(&mut request, &mut memory).unwrap();
    instance.fill(&memory);
    let options = RecordOptions::default();
    instance.run(&mut Host::new(&memory, &options)).unwrap();
    instance.verify(&memory).unwrap_or_else(|message| panic!("{} on {gpus} GPUs: {message}", workload.name()));
    memory.arrays().iter().enumerate().map(|(index, array)| (array.name.clone(), memory.bits(index))).collect()
}

#[test]
fn results_do_not_depend_on_the_number_of_gpus() {
    agree_with_one_gpu(&[7]);
}

#[test]
#[ignore = "deep: further numbers of GPUs"]
fn results_do_not_depend_on_the_number_of_gpus_up_to_16() {
    agree_with_one_gpu(&[2, 4, 16]);
}

/// Compares the results of every program on so many GPUs with those on a single GPU.
fn agree_with_one_gpu(numbers: &[u8]) {
    // The result of a collective depends on its number of ranks.
    let is_collective = |workload: &dyn Workload| crate::suite(workload) == "collectives";
    for (workload, request) in requests().filter(|(workload, _)| !is_collective(*workload)) {
        let alone = results(workload, &request, 1);
        for &gpus in numbers {
            let shared = results(workload, &request, gpus);
            // An array owned by a single GPU has the GPU's number in its name.
            let is_own =
                |name: &str| name.strip_suffix('0').is_some_and(|stem| shared.contains_key(&format!("{stem}1")));
            let common: Vec<_> = alone.iter().filter(|(name, _)| !is_own(name)).collect();
            assert!(!common.is_empty(), "{} has arrays of all GPUs", workload.name());
            for (name, contents) in common {
                assert!(shared[name] == *contents, "{name} of {} on {gpus} GPUs", workload.name());
            }
        }
    }
}

#[test]
fn every_launch_has_a_part_for_each_gpu() {
    for workload in programs() {
        for gpus in [1, 4, 16] {
            let request = small(workload).with_gpus(gpus);
            let recording = record(workload, &request, &RecordOptions::default(), Mode::Auto).unwrap();
            for kernel in recording.kernels() {
                assert_eq!(kernel.parts.len(), usize::from(gpus), "{} of {}", kernel.name, workload.name());
            }
        }
    }
}

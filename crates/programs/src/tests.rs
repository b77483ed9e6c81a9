//! Tests for properties required from every shipped workload.

use super::small::{request, small};
use super::variants::VARIANTS;
use super::*;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tombolo_types::LineSize;
use tombolo_types::stream::{Command, CtaStream, Op, Program};
use tombolo_workload::bench::{Mode, Request, Workload, WorkloadError, footprint, record};
use tombolo_workload::record::{RecordError, RecordOptions, Recording, Sample};
use tombolo_workload::scale::Scale;
use tombolo_workload::simt::{Backing, Memory, Scaling};
use tombolo_workload::trace;

fn options() -> RecordOptions {
    RecordOptions::default()
}

fn recorded(workload: &dyn Workload, options: &RecordOptions, mode: Mode) -> Recording {
    record(workload, &small(workload), options, mode).unwrap_or_else(|error| panic!("{error}"))
}

/// Streams for all CTAs in all kernels.
fn streams(recording: &dyn Program) -> Vec<CtaStream> {
    let mut all = Vec::new();
    for (kernel, info) in (0..).zip(recording.kernels()) {
        for cta in 0..info.ctas {
            let mut stream = CtaStream::default();
            recording.cta(kernel, cta, &mut stream).unwrap();
            all.push(stream);
        }
    }
    all
}

fn assert_same(a: &Recording, b: &Recording, what: &str) {
    assert_eq!(a.kernels(), b.kernels(), "{}: {what}", a.name());
    assert_eq!(a.commands(), b.commands(), "{}: {what}", a.name());
    assert_eq!((a.arrays(), a.host_phases()), (b.arrays(), b.host_phases()), "{}: {what}", a.name());
    assert_eq!((a.setup(), a.results()), (b.setup(), b.results()), "{}: {what}", a.name());
    assert!(streams(a) == streams(b), "{}: streams differ: {what}", a.name());
}

/// Records each program once for all properties; a property that compares two recordings adds the second.
#[test]
fn every_workload_keeps_what_recordings_promise() {
    for &workload in list() {
        let recording = recorded(workload, &options(), Mode::Verify);
        pinned::assert_pinned(workload.name(), "", &recording);
        computes_for_wide_warps(workload);
        is_the_same_in_every_run_for_every_thread_count_and_on_disk(workload, &recording);
        has_the_same_streams_by_addresses_alone(workload, &recording);
        is_whole_in_a_sample_too_large_to_matter(workload, &recording);
        accesses_arrays_alone_and_launches_every_kernel(&recording);
        // Every copy and every host access lies within a single array.
        told(&recording);
        host_ends::assert_sets_something_up_and_reads_something_back(&recording);
        survives_writing(&recording);
    }
}

fn computes_for_wide_warps(workload: &dyn Workload) {
    let line = LineSize::new(64).unwrap();
    recorded(workload, &RecordOptions { warp_width: 64, line, ..options() }, Mode::Verify);
}

/// The run with a single thread also checks that independent kernels are independent.
fn is_the_same_in_every_run_for_every_thread_count_and_on_disk(workload: &dyn Workload, first: &Recording) {
    // The run with a single thread keeps all streams on disk.
    for (threads, check_independence, held_bytes) in [(1, true, 0), (3, false, options().held_bytes)] {
        let again = RecordOptions { threads, check_independence, held_bytes, ..options() };
        let again = recorded(workload, &again, Mode::Verify);
        assert_same(first, &again, &format!("{threads} threads, {held_bytes} bytes held"));
        assert_eq!(first.packed_bytes(), again.packed_bytes());
        assert_eq!(first.spilled_bytes(), 0);
        let spilled = if held_bytes == 0 { first.packed_bytes() } else { 0 };
        assert_eq!(again.spilled_bytes(), spilled, "a repeated launch takes no space");
    }
}

fn has_the_same_streams_by_addresses_alone(workload: &dyn Workload, full: &Recording) {
    if workload.data_independent() {
        assert_same(full, &recorded(workload, &options(), Mode::AddressOnly), "addresses alone");
    } else {
        assert!(record(workload, &small(workload), &options(), Mode::AddressOnly).is_err());
    }
}

fn is_whole_in_a_sample_too_large_to_matter(workload: &dyn Workload, whole: &Recording) {
    let sample = Sample { at_once: Arc::new(|_| 1 << 40), blocks: 1, work: 1 << 60, launches: 1 << 20, held_back: 0 };
    let sampled = recorded(workload, &RecordOptions { sample: Some(sample), ..options() }, Mode::Auto);
    assert_eq!(whole.launches(), sampled.launches(), "{}", whole.name());
    assert_eq!(streams(whole), streams(&sampled), "{}", whole.name());
    let weights: f64 = sampled.parts().iter().map(|part| part.weights.total).sum();
    assert_eq!(weights.round() as u64, whole.launches(), "{}", whole.name());
}

fn accesses_arrays_alone_and_launches_every_kernel(recording: &Recording) {
    let (line, arrays) = (recording.line_size(), recording.arrays());
    for stream in streams(recording) {
        for access in &stream.accesses {
            let address = line.address_of(access.line);
            let place = arrays.partition_point(|array| array.base <= address).checked_sub(1);
            let array = &arrays[place.expect("an address below every array")];
            assert!(address < array.base + array.bytes, "{}: {address:#x}", recording.name());
        }
    }
    let launches = recording.commands().iter().filter_map(|command| match command {
        Command::Launch { kernel, .. } => Some(*kernel),
        Command::Copy { .. } | Command::Host { .. } | Command::Barrier => None,
    });
    let launched: HashSet<_> = launches.collect();
    assert_eq!(launched.len(), recording.kernels().len(), "{}", recording.name());
}

/// Writes the recording in the native trace format and reads it back.
fn survives_writing(recording: &Recording) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("program.tombolo");
    trace::write(recording, &file).unwrap();
    let read = trace::open(&file, recording.line_size(), options().warp_width).unwrap();
    let whole = (recording.kernels(), recording.commands(), recording.arrays(), recording.host_phases());
    assert_eq!((read.kernels(), read.commands(), read.arrays(), read.host_phases()), whole, "{}", recording.name());
    assert_eq!((read.setup(), read.results()), (recording.setup(), recording.results()), "{}", recording.name());
    assert!(streams(&*read) == streams(recording), "{}: streams differ once written", recording.name());
}

/// Describes a program's commands: a kernel, a copy with a byte count, or the arrays read and written by the host.
fn told(recording: &Recording) -> Vec<String> {
    let name = |range: &Range<u64>| {
        let array = recording.arrays().iter().find(|array| array.addresses().contains(&range.start)).unwrap();
        assert!(range.end <= array.addresses().end, "{range:?} leaves {}", array.name);
        format!("{}[{}]", array.name, (range.end - range.start) / u64::from(array.element.unwrap()))
    };
    let names = |ranges: &[Range<u64>]| ranges.iter().map(name).collect::<Vec<_>>().join(" ");
    let command = |command: &Command| match *command {
        Command::Launch { kernel, .. } => recording.kernels()[kernel as usize].name.clone(),
        Command::Copy { address, bytes, to_device } => {
            format!("{} {}", if to_device { "in" } else { "out" }, name(&(address..address + bytes)))
        }
        Command::Host { phase } => {
            let phase = &recording.host_phases()[phase as usize];
            format!("reads {} writes {}", names(&phase.reads), names(&phase.writes)).trim_end().to_owned()
        }
        Command::Barrier => "barrier".to_owned(),
    };
    recording.commands().iter().map(command).collect()
}

#[test]
fn what_the_host_does_between_launches_is_recorded_once() {
    let bfs = recorded(find("bfs").unwrap(), &options(), Mode::Auto);
    let told_of_bfs = told(&bfs);
    let first = told_of_bfs.iter().position(|command| command == "bfs-level").unwrap();
    let level = ["reads  writes changed[1]", "in changed[1]", "bfs-level", "out changed[1]"];
    assert_eq!(told_of_bfs[first - 2..first + 2], level);
    let both = "reads changed[1] writes changed[1]";
    assert_eq!(told_of_bfs[first + 2..first + 5], [both, "in changed[1]", "bfs-level"]);
    assert_eq!(told_of_bfs[told_of_bfs.len() - 2], "reads changed[1] writes", "the last level changes nothing");
    assert_eq!(bfs.host_phases().len(), 4, "each once, and the level of the source");

    let backprop = recorded(find("backprop").unwrap(), &options(), Mode::Auto);
    let sums = backprop.arrays().iter().find(|array| array.name == "sums").unwrap();
    let between = backprop.host_phases().iter().flat_map(|phase| &phase.reads);
    assert_eq!(between.cloned().collect::<Vec<_>>(), [sums.addresses()]);
}

#[test]
fn the_host_clears_the_flag_of_a_search_before_each_level_and_reads_it_behind() {
    let told_of_bfs = told(&recorded(find("rodinia-bfs").unwrap(), &options(), Mode::Auto));
    let first = told_of_bfs.iter().position(|command| command == "expand").unwrap();
    let level = ["in over[1]", "expand", "advance", "out over[1]", "reads over[1] writes over[1]"];
    assert_eq!(told_of_bfs[first - 2], "reads  writes over[1]");
    assert_eq!(told_of_bfs[first - 1..first + 4], level);
    assert_eq!(told_of_bfs[first + 4..first + 9], level);
    assert_eq!(told_of_bfs[told_of_bfs.len() - 2..], ["reads over[1] writes", "out cost[1100]"]);
}

#[test]
fn the_host_copies_the_low_band_of_an_image_between_levels() {
    let told_of_image = told(&recorded(find("dwt2d").unwrap(), &options(), Mode::Auto));
    // Of 70 × 41 pixels, 35 × 21 are in the low band along both sides, and in the next level 18 × 11.
    let red = ["in source[2304]", "split", "transform", "reads red-bands[735] writes red[735]", "transform"];
    assert_eq!(told_of_image[..5], red);
    assert_eq!(told_of_image[5..8], ["reads red-bands[198] writes red[198]", "transform", "transform"]);
}

#[test]
fn every_variant_computes_what_its_reference_does_and_is_as_independent_as_it_says() {
    for (name, request, text) in variants() {
        let options = RecordOptions { warp_width: 32, check_independence: true, ..options() };
        let recording = record(find(name).unwrap(), &request, &options, Mode::Verify).unwrap();
        pinned::assert_pinned(name, &text, &recording);
    }
}

#[test]
#[ignore = "deep: quarter of a minute"]
fn every_variant_computes_what_its_reference_does_in_warps_of_64_threads() {
    for (name, request, _) in variants() {
        let options = RecordOptions { warp_width: 64, check_independence: false, ..options() };
        record(find(name).unwrap(), &request, &options, Mode::Verify).unwrap();
    }
}

/// Workload name, request and parameter text per variant.
pub(super) fn variants() -> impl Iterator<Item = (&'static str, Request, String)> {
    VARIANTS.iter().map(|(name, given)| {
        let text: String = given.iter().map(|(key, value)| format!(",{key}={value}")).collect();
        let given: Vec<_> = given.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        (*name, Request::new(find(name).unwrap(), Scale::FULL, &given, 7).unwrap(), text)
    })
}

#[test]
fn a_cta_that_was_tried_runs_as_if_it_had_not_been() {
    let sample = Sample { at_once: Arc::new(|_| 1), blocks: 1 << 20, work: 1, launches: 1 << 20, held_back: 0 };
    let options_of_sample = RecordOptions { sample: Some(sample), ..options() };
    for name in ["mcb", "floydwarshall", "kmeans", "vectoradd"] {
        let workload = find(name).unwrap();
        let (whole, sampled) =
            (recorded(workload, &options(), Mode::Auto), recorded(workload, &options_of_sample, Mode::Auto));
        assert!(!sampled.is_sampled(), "{name}");
        assert_eq!(streams(&whole), streams(&sampled), "{name}");
    }
}

#[test]
fn a_program_whose_launches_decide_each_others_addresses_is_not_sampled() {
    let sample = Sample { at_once: Arc::new(|_| 1), blocks: 1, work: 1, launches: 2, held_back: 0 };
    let options = RecordOptions { sample: Some(sample), ..options() };
    let refused = |name: &str| {
        let workload = find(name).unwrap();
        record(workload, &small(workload), &options, Mode::Auto).err().map(|error| error.to_string())
    };
    for name in list().iter().filter(|workload| workload.data_independent()).map(|workload| workload.name()) {
        assert_eq!(refused(name), None, "{name}");
    }
    for name in ["floydwarshall", "raytracing", "rsbench", "bfs"] {
        assert_eq!(refused(name), None, "{name}: one launch, its own inputs, or recorded whole");
    }
    let mcb = find("mcb").unwrap();
    let given = [("particles", "4096"), ("side", "7"), ("steps", "2")].map(|(key, value)| (key.into(), value.into()));
    let many = Request::new(mcb, Scale::FULL, &given, 7).unwrap();
    let refused = record(mcb, &many, &options, Mode::Auto).err();
    let why = refused.expect("its second step goes on with the particles of the first").to_string();
    assert!(why.starts_with("mcb: the program cannot be sampled: addresses of kernel track may depend"), "{why}");
}

/// A workload's error message for parameters that do not fit.
fn refusal(name: &str, scale: &str, given: &[(&str, &str)]) -> String {
    let given: Vec<_> = given.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let workload = find(name).unwrap();
    let request = Request::new(workload, scale.parse().unwrap(), &given, 7).unwrap();
    footprint(workload, &request).expect_err("it must not fit").to_string()
}

#[test]
fn arrays_that_do_not_fit_the_host_are_refused_and_others_are_not() {
    for workload in list().iter().filter(|workload| !workload.data_independent()) {
        let (name, request) = (workload.name(), small(*workload));
        let needs: u64 = footprint(*workload, &request).unwrap().iter().map(|array| array.bytes).sum();
        let with = |memory| {
            let options = RecordOptions { memory: Some(memory), ..options() };
            record(*workload, &request, &options, Mode::Auto).map(drop)
        };
        let refused = with(needs - 1).unwrap_err();
        assert!(matches!(refused, WorkloadError::Memory { needs: told, has, .. } if told == needs && has == needs - 1));
        let said = refused.to_string();
        assert!(said.starts_with(&format!("{name} needs ")) && said.contains("MiB of memory for its arrays"), "{said}");
        let taken = with(needs);
        // The streams of a cooperative kernel may be larger than its arrays, and are counted separately.
        let fits = matches!(taken, Ok(()) | Err(WorkloadError::Record { error: RecordError::Memory { .. }, .. }));
        assert!(fits, "{name}: {taken:?}");
    }
    let alone = RecordOptions { memory: Some(0), ..options() };
    recorded(find("triad").unwrap(), &alone, Mode::Auto);
}

#[test]
fn indices_that_do_not_fit_are_refused() {
    assert_eq!(refusal("memcopy", "2", &[("mib", "4096")]), "memcopy: 2147483648 elements exceed 2^31 - 1, at scale 2");
    let many = [("nodes", "67108864"), ("degree", "1024")];
    assert_eq!(refusal("bfs", "1", &many), "lonestar-bfs: 68719476736 arcs exceed 2^31 - 1");
    let scaled = refusal("bfs", "64", &[("nodes", "67108864"), ("degree", "4")]);
    assert_eq!(scaled, "lonestar-bfs: 4294967296 nodes: at most 67108864 are allowed, at scale 64");
    let random = [("network", "random"), ("nodes", "67108864"), ("degree", "1024")];
    assert_eq!(refusal("sssp", "1", &random), "lonestar-sssp: 68719476736 arcs exceed 2^31 - 1");
}

#[test]
fn a_degree_is_of_a_random_network() {
    for name in ["lonestar-mst", "lonestar-sssp"] {
        assert_eq!(refusal(name, "1", &[("degree", "16")]), format!("{name}: `degree` is of network=random"));
    }
}

#[test]
fn each_cta_of_the_bandwidth_probe_has_a_part() {
    let given = [("kib".to_owned(), "16".to_owned()), ("ctas".to_owned(), "4097".to_owned())];
    let workload = find("bandwidth").unwrap();
    let arrays = footprint(workload, &Request::new(workload, "1".parse().unwrap(), &given, 7).unwrap()).unwrap();
    assert_eq!(arrays[0].bytes, 4097 * 4096 * 4);
}

#[test]
fn a_graph_and_the_size_of_a_generated_one_are_refused_together() {
    for (name, key, value) in [("bfs", "degree", "4"), ("bfs", "nodes", "9"), ("mst", "network", "mesh")] {
        let refused = refusal(name, "1", &[("graph", "roads.gr"), (key, value)]);
        let expected =
            format!("lonestar-{name}: `{key}` is of a generated network, and `graph=roads.gr` takes the place of one");
        assert!(refused.starts_with(&expected), "{refused}");
    }
}

#[test]
fn every_check_fails_on_what_is_no_number() {
    for workload in list() {
        let mut memory = Memory::new(Backing::Real);
        let instance = workload.lay_out(&mut small(*workload), &mut memory).unwrap();
        instance.fill(&memory);
        memory.poison();
        // References that use array contents as indices may panic on these values.
        let verdict = catch_unwind(AssertUnwindSafe(|| instance.verify(&memory)));
        assert!(!matches!(verdict, Ok(Ok(()))), "{}", workload.name());
    }
}

#[test]
fn a_sample_of_a_large_grid_fills_the_machine_a_few_times() {
    let workload = find("vectoradd").unwrap();
    let given = [("elements".to_owned(), "1000000".to_owned())];
    let request = Request::new(workload, Scale::FULL, &given, 7).unwrap();
    let sample = Sample {
        at_once: Arc::new(|kernel| 25_600 / u64::from(kernel.threads_per_cta)),
        blocks: 1,
        work: 1,
        launches: 1,
        held_back: 0,
    };
    let options = RecordOptions { sample: Some(sample), ..options() };
    let recording = record(workload, &request, &options, Mode::Auto).unwrap();
    let ctas: Vec<u32> = recording.kernels().iter().map(|kernel| kernel.ctas).collect();
    assert_eq!((ctas, recording.launches(), recording.is_sampled()), (vec![400], 1, true));
}

/// A workload's address space with default parameters.
fn laid_out(workload: &dyn Workload, scale: &str) -> Memory {
    let mut request = Request::new(workload, scale.parse().unwrap(), &[], 7).unwrap();
    let mut memory = Memory::new(Backing::AddressOnly);
    workload.lay_out(&mut request, &mut memory).unwrap();
    memory
}

#[test]
fn footprints_follow_the_scale_within_two() {
    for workload in list() {
        let full = laid_out(*workload, "1");
        for (text, factor) in [("1/4", 4.0), ("1/16", 16.0), ("1/32", 32.0)] {
            let scaled = laid_out(*workload, text);
            let around = |factor: f64| factor / 2.0..=factor * 2.0;
            let right = around(factor);
            // A mesh with a few elements is mostly surface: at 1/32 only the total is checked.
            let arrays = full.arrays().iter().zip(full.scalings()).zip(scaled.arrays());
            for ((array, scaling), scaled) in arrays.filter(|_| text != "1/32") {
                let shrunk = array.bytes as f64 / scaled.bytes as f64;
                let right = match scaling {
                    Scaling::Scales => right.contains(&shrunk),
                    Scaling::Root => around(factor.sqrt()).contains(&shrunk),
                    Scaling::Fixed => shrunk == 1.0,
                };
                assert!(right, "{} {} at {text} is {shrunk} times smaller", workload.name(), array.name);
            }
            // An array that scales by the square root shrinks less, and counts in the total accordingly.
            let wanted = full.arrays().iter().zip(full.scalings()).map(|(array, scaling)| match scaling {
                Scaling::Root => array.bytes as f64 / factor.sqrt(),
                Scaling::Scales | Scaling::Fixed => array.bytes as f64 / factor,
            });
            let right = around(full.bytes() as f64 / wanted.sum::<f64>());
            let shrunk = full.bytes() as f64 / scaled.bytes() as f64;
            assert!(right.contains(&shrunk), "{} at {text} is {shrunk} times smaller", workload.name());
        }
    }
}

/// Entries in HMG's Table III: name in the paper, workload name, footprint in MiB.
const TABLE_III: [(&str, &str, u64); 20] = [
    ("cuSolver", "cusolver", 1638),
    ("HPC_CoMD-xyz49", "comd", 313),
    ("HPC_HPGMG", "hpgmg", 1352),
    ("HPC_MiniAMR-test2", "miniamr", 1843),
    ("HPC_MiniContact", "minicontact", 246),
    ("HPC_namd2.10", "namd", 72),
    ("HPC_Nekbone-10", "nekbone", 178),
    ("HPC_snap", "snap", 3523),
    ("Lonestar_bfs-road-fla", "bfs", 26),
    ("Lonestar_mst-road-fla", "mst", 83),
    ("ML_AlexNet_conv2", "alexnet-conv2", 812),
    ("ML_GoogLeNet_conv2", "googlenet-conv2", 1178),
    ("ML_lstm_layer2", "lstm-layer2", 710),
    ("ML_overfeat_layer1", "overfeat-layer1", 618),
    ("ML_resnet", "resnet", 3277),
    ("ML_RNN_layer4_DGRAD", "rnn-dgrad", 29),
    ("ML_RNN_layer4_FW", "rnn-forward", 40),
    ("ML_RNN_layer4_WGRAD", "rnn-wgrad", 38),
    ("Rodinia_nw-16K-10", "nw", 2048),
    ("Rodinia_pathfinder", "pathfinder", 1526),
];

#[test]
fn footprints_at_scale_one_are_the_papers() {
    for (title, name, published) in TABLE_III {
        let workload = find(name).unwrap();
        assert!(workload.source().contains(&format!("HMG Table III ({title})")), "{name}: {}", workload.source());
        let found = laid_out(workload, "1").bytes();
        let right = (published << 20) * 90 / 100..=(published << 20) * 105 / 100;
        assert!(right.contains(&found), "{name}: {} MiB of {published}", found >> 20);
    }
}

/// Arrays with a fixed size must be small compared to shrinking caches and directories, or a scaled run answers another
/// question. At 1/32 an L2 in HMG's machine has 96 KB per module, and its directory reaches 192 KB.
#[test]
fn what_does_not_scale_is_small_beside_a_scaled_cache() {
    for (_, name, _) in TABLE_III {
        let memory = laid_out(find(name).unwrap(), "1");
        let arrays = memory.arrays().iter().zip(memory.scalings());
        let fixed: u64 = arrays.filter(|(_, scaling)| **scaling == Scaling::Fixed).map(|(array, _)| array.bytes).sum();
        assert!(fixed <= 12 << 10, "{name}: {fixed} bytes do not scale");
    }
}

/// Line transactions for all loads in a kernel's first CTA.
fn loaded(recording: &Recording, name: &str) -> u32 {
    let kernel = recording.kernels().iter().position(|kernel| kernel.name == name).unwrap();
    let mut stream = CtaStream::default();
    recording.cta(kernel as u32, 0, &mut stream).unwrap();
    let of = |op: &Op| if let Op::Load { accesses, .. } = op { u32::from(accesses.len) } else { 0 };
    stream.ops.iter().map(of).sum()
}

#[test]
fn tiles_load_the_lines_of_their_slabs() {
    let of = |name: &str| recorded(find(name).unwrap(), &options(), Mode::Auto);
    // Three slabs of 32 terms cover 96 terms, with 32 rows and 32 columns of a line each.
    assert_eq!(loaded(&of("rnn-dgrad"), "state-product"), 3 * 64);
    // Three such slabs with a row of 32 units per term, plus the sums for 32 samples to add to.
    assert_eq!(loaded(&of("rnn-forward"), "state-product"), 3 * 64 + 32);
    // A total of 105 samples in 14 slabs: a row of 96 gradients has three lines, a row of 64 inputs two.
    assert_eq!(loaded(&of("rnn-wgrad"), "input-weights"), 105 * 5);
}

#[test]
fn tiles_take_their_share_of_an_sm() {
    let recording = recorded(find("googlenet-conv2").unwrap(), &options(), Mode::Auto);
    let kernel = &recording.kernels()[0];
    // Two buffers of 8 terms with 64 weights and 128 pixels, each padded by 4 words.
    assert_eq!((kernel.registers, kernel.shared_bytes), (128, 4 * 2 * 8 * 200));
}

#[test]
fn layers_that_do_not_fit_are_refused() {
    let refused = [
        ("alexnet-conv2", ("inputs", "97"), "97 inputs and 256 outputs: both must be multiples of 2, the groups"),
        ("overfeat-layer1", ("side", "5"), "side 5 is smaller than the filter of 7"),
        ("resnet", ("batch", "4000"), "51380224000 elements exceed 2^31 - 1"),
        ("rnn-wgrad", ("hidden", "16384"), "4294967296 elements exceed 2^31 - 1"),
    ];
    for (name, (key, value), message) in refused {
        let workload = find(name).unwrap();
        let given = [(key.to_owned(), value.to_owned())];
        let request = Request::new(workload, "16".parse().unwrap(), &given, 7).unwrap();
        let error = footprint(workload, &request).err().unwrap().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn small_instances_run_every_kernel() {
    let expected: [(&str, &[&str]); 3] = [
        ("miniamr", &["exchange", "merge", "split", "stencil"]),
        ("hpgmg", &["boundary", "clear", "copy", "exchange", "interpolate", "norm", "residual", "restrict", "smooth"]),
        ("nekbone", &["add2s1", "add2s2", "ax", "copy", "dot", "dot-finish", "gather-scatter", "mask"]),
    ];
    for (name, kernels) in expected {
        let recording = recorded(find(name).unwrap(), &options(), Mode::Auto);
        let launched: BTreeSet<_> = recording.kernels().iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(launched.into_iter().collect::<Vec<_>>(), kernels, "{name}");
    }
}

#[test]
fn graphs_come_from_files_too() {
    let file = tempfile::Builder::new().suffix(".gr").tempfile().unwrap();
    std::fs::write(file.path(), "p sp 5 4\na 1 2 4\na 2 3 1\na 3 1 2\na 4 5 9\n").unwrap();
    for name in ["bfs", "mst"] {
        let workload = find(name).unwrap();
        let given = [("graph".to_owned(), file.path().display().to_string())];
        let request = Request::new(workload, "1/16".parse().unwrap(), &given, 7).unwrap();
        let recording = record(workload, &request, &options(), Mode::Verify).unwrap();
        assert_eq!(recording.arrays()[0].bytes, 20, "a file's graph does not scale");
        let missing = [("graph".to_owned(), "/nowhere/a.gr".to_owned())];
        let request = Request::new(workload, Scale::FULL, &missing, 7).unwrap();
        let error = footprint(workload, &request).err().unwrap().to_string();
        assert!(error.starts_with("/nowhere/a.gr: cannot be opened"), "{error}");
    }
}

#[test]
fn threads_decode_side_by_side() {
    let recording = recorded(find("pathfinder").unwrap(), &options(), Mode::Auto);
    let expected = streams(&recording);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert!(streams(&recording) == expected));
        }
    });
    let missing = recording.cta(0, 1 << 20, &mut CtaStream::default()).unwrap_err();
    assert_eq!(missing.message, "kernel 0 has no CTA 1048576");
}

#[test]
fn every_workload_describes_itself() {
    let names: HashSet<_> = list().iter().map(|workload| workload.name()).collect();
    assert_eq!(names.len(), list().len());
    for workload in list() {
        assert!(!workload.about().is_empty() && !workload.source().is_empty());
        assert!(workload.parameters().iter().all(|parameter| !parameter.source.is_empty()));
        assert!(find(workload.name()).is_ok());
    }
    assert!(find("nothing").err().unwrap().to_string().contains("triad"));
}

#[test]
fn the_template_of_a_workload_computes_what_it_says() {
    let workload = &template::TEMPLATE;
    let request = request(workload, &[("elements", "1000"), ("iterations", "2")]);
    let recording = record(workload, &request, &RecordOptions::default(), Mode::Verify).unwrap();
    assert_eq!(recording.launches(), 2);
}

//! Checks that every shipped file resolves: machines, designs, workloads, rows and columns in claims, repetitions.

use std::collections::BTreeSet;
use tombolo_experiment::preset::{list, paper, papers};
use tombolo_experiment::spec::{Claim, Kind, Repeat, Take};
use tombolo_experiment::{ExperimentPlan, ScaleChoice, Study};

/// Scales at which a paper's experiments must resolve. Modules in CPElide's machine have 60 SMs, in GPS's 80, and in
/// UMH's 16.
fn choices(paper: &str) -> [ScaleChoice; 3] {
    let small = match paper {
        "cpelide" => "1/30",
        "gps" => "1/40",
        "umh" => "1/16",
        _ => "1/32",
    };
    [ScaleChoice::Quick, ScaleChoice::Paper, ScaleChoice::Fixed(small.parse().expect("a scale"))]
}

#[test]
fn every_experiment_resolves_at_every_scale() {
    for name in papers() {
        let (_, experiments) = paper(name).expect("readable");
        assert!(!experiments.is_empty(), "{name}");
        for (file, spec) in experiments {
            for choice in choices(name) {
                if let Err(error) = ExperimentPlan::new(file.clone(), spec.clone(), choice) {
                    panic!("at {choice}: {error}");
                }
            }
        }
    }
}

/// Statements without a default claim, although alternative readings have claims, each with the reason.
const WITHOUT_DEFAULT: [(&str, &str); 18] = [
    ("faster-l3-gains-less", "it is of a value that the paper leaves open"),
    ("hmg-behind", "the paper has it of single programs"),
    ("needed-ahead-of-all", "the paper has no copies of what others read"),
    ("gps-ahead-of-needed", "the paper has no copies of what others read"),
    ("gps-over-needed", "the paper has no copies of what others read"),
    ("faults-decide", "it is of a value that the paper leaves open"),
    ("loads-feel-latency", "it is of a value that the paper leaves open"),
    ("more-iterations-gain-jacobi", "it is of a value that the paper leaves open"),
    ("more-iterations-gain-pagerank", "it is of a value that the paper leaves open"),
    ("more-iterations-gain-eqwp", "it is of a value that the paper leaves open"),
    ("pinning-helps", "the paper has no pinning"),
    ("eqwp-gain", "it compares two readings"),
    ("eqwp-hits-gain", "it compares two readings"),
    ("more-groups-a-turn-help-umh", "it compares two readings"),
    ("flush-all-slower", "it compares two readings"),
    ("open-rows-faster", "it compares two readings"),
    ("aligned-ranges-ahead-of-even", "it compares two readings"),
    ("replicated-inputs-ahead-of-even", "it compares two readings"),
];

#[test]
fn a_claim_of_another_reading_stands_beside_the_default_one() {
    let mut others = BTreeSet::new();
    for name in papers() {
        assert_eq!(tombolo_experiment::readings::faults(name).expect("readable"), Vec::<String>::new(), "{name}");
        let (_, experiments) = paper(name).expect("readable");
        let ids: Vec<&str> = experiments.iter().flat_map(|(_, spec)| &spec.claim).map(|claim| claim.id.get()).collect();
        let statements = ids.iter().filter_map(|id| id.split_once('@')).map(|(statement, _)| statement);
        others.extend(statements.filter(|statement| !ids.contains(statement)).map(str::to_owned));
    }
    let excepted: BTreeSet<String> = WITHOUT_DEFAULT.iter().map(|(statement, _)| (*statement).to_owned()).collect();
    assert_eq!(others, excepted);
}

#[test]
fn ids_are_given_once_and_every_kind_of_claim_is_made() {
    for name in papers() {
        let (_, experiments) = paper(name).expect("readable");
        let ids: BTreeSet<_> = experiments.iter().map(|(_, spec)| spec.id.clone()).collect();
        assert_eq!(ids.len(), experiments.len(), "{name}: figures");
        let claims: Vec<_> = experiments.iter().flat_map(|(_, spec)| &spec.claim).collect();
        let ids: BTreeSet<_> = claims.iter().map(|claim| claim.id.get()).collect();
        assert_eq!(ids.len(), claims.len(), "{name}: claims");
        for kind in [Kind::Identity, Kind::Mechanism, Kind::Direction, Kind::Magnitude] {
            assert!(claims.iter().any(|claim| claim.kind == kind), "{name}: {kind:?}");
        }
    }
}

#[test]
fn every_direction_measured_by_simulation_is_repeated() {
    for name in papers() {
        for (_, spec) in paper(name).expect("readable").1 {
            // Counters alone have no rival to compare with, and neither has a claim that such a row exists.
            let compares = spec.metric.iter().any(|metric| metric.relative.is_some());
            let mut directions = spec.claim.iter().filter(|claim| claim.kind == Kind::Direction);
            let exists = |claim: &Claim| matches!(claim.each_row, Some(Take::Greatest));
            let judged = compares && directions.any(|claim| claim.mechanism.is_none() && !exists(claim));
            let repeats = |has: fn(&Repeat) -> bool| spec.repeat.iter().any(has);
            let repeated = repeats(|repeat| !repeat.seeds.is_empty())
                && repeats(|repeat| !repeat.scales.is_empty() || repeat.whole_inputs || repeat.second_inputs);
            // A figure drawn only on request varies a figure whose directions are already repeated.
            assert!(
                !judged || repeated || spec.on_request,
                "{name}/{}: directions are repeated by seed and by scale",
                spec.id
            );
        }
    }
}

#[test]
fn at_paper_scale_directions_are_repeated_where_that_is_asked_for_alone() {
    let points =
        |choice, robust| Study::of_paper("hmg", Some("8"), choice).expect("ships").count(robust).expect("resolves");
    let without_repetitions = points(ScaleChoice::Paper, false);
    assert!(points(ScaleChoice::Quick, false) > without_repetitions);
    assert!(points(ScaleChoice::Paper, true) > without_repetitions);
    assert!(points(ScaleChoice::Fixed("1/8".parse().expect("a scale")), false) > without_repetitions);
}

#[test]
fn what_is_halved_and_doubled_is_marked_assumed_where_it_stands() {
    for name in papers() {
        for (_, spec) in paper(name).expect("readable").1 {
            let values = tombolo_machine::machine(spec.machines[0].get()).expect("a machine").values();
            for path in spec.repeat.iter().flat_map(|repeat| &repeat.assumed) {
                let source = values.iter().find(|value| value.path == path.get()).map(|value| value.source.as_str());
                assert!(source.is_some_and(|source| source.contains("assumed")), "{}: {source:?}", path.get());
            }
        }
    }
}

/// Assumed values that no experiment halves and doubles, with the reason.
const NOT_REPEATED: [(&str, &str); 34] = [
    ("hmg-4x4 host.dispatch_interval", "times are whole cycles: it is one"),
    ("numa-4 host.dispatch_interval", "times are whole cycles: it is one"),
    ("numa-4 sm.tensor_cycles", "no program of that paper has matrix instructions"),
    ("numa-4 directory.ways", "no design of that paper has a directory"),
    ("numa-4 tlb.l1_entries", "twice as many are more than the simulator looks up at once"),
    ("numa-4 tlb.l2_latency", "it is 0"),
    ("chiplet-4 sm.ctas", "no more CTAs than warps fit"),
    ("chiplet-4 sm.tensor_cycles", "no program of that paper has matrix instructions"),
    ("chiplet-4 l2.request_cycles", "times are whole cycles: it is one"),
    ("chiplet-4 gpu_link.rate", "there is one GPU"),
    ("chiplet-4 gpu_link.latency", "there is one GPU"),
    ("chiplet-4 tlb.l1_entries", "twice as many are more than the simulator looks up at once"),
    ("chiplet-4 tlb.l2_latency", "it is 0"),
    ("chiplet-4 tlb.walk_latency", "it is 0"),
    ("chiplet-4 host.unicast_latency", "the paper states it; the clock is assumed"),
    ("chiplet-4 host.dispatch_interval", "times are whole cycles: it is one"),
    ("chiplet-4 host.copy_latency", "it is 0"),
    ("gps-4-pcie3 directory.ways", "no design of that paper has a directory"),
    ("gps-4-pcie3 tlb.l1_entries", "twice as many are more than the simulator looks up at once"),
    ("gps-4-pcie3 host.dispatch_interval", "times are whole cycles: it is one"),
    ("umh-4-pcie l1.lookups_per_cycle", "it is one line"),
    ("umh-4-pcie sm.tensor_cycles", "no program of that paper has matrix instructions"),
    ("umh-4-pcie l2.request_cycles", "times are whole cycles: it is one"),
    ("umh-4-pcie directory.entries", "no design of that paper has such a directory"),
    ("umh-4-pcie directory.ways", "no design of that paper has such a directory"),
    ("umh-4-pcie directory.lines_per_entry", "no design of that paper has such a directory"),
    ("umh-4-pcie directory.tag_bits", "no design of that paper has such a directory"),
    ("umh-4-pcie tlb.l1_entries", "twice as many are more than the simulator looks up at once"),
    ("umh-4-pcie tlb.l2_entries", "they cover all of memory"),
    ("umh-4-pcie tlb.l2_ways", "they cover all of memory"),
    ("umh-4-pcie tlb.walkers", "walks take no time"),
    ("umh-4-pcie host.dispatch_interval", "times are whole cycles: it is one"),
    ("umh-4-pcie host_memory.bytes", "it is never full"),
    ("umh-4-pcie stack.probe_cycles", "times are whole cycles: it is one"),
];

#[test]
fn every_assumed_number_of_a_paper_s_machine_is_halved_and_doubled() {
    for name in papers() {
        let experiments = paper(name).expect("readable").1;
        let with =
            |spec: &&tombolo_experiment::spec::Experiment| spec.repeat.iter().any(|repeat| !repeat.assumed.is_empty());
        let specs: Vec<_> = experiments.iter().map(|(_, spec)| spec).filter(with).collect();
        let spec = specs.first().expect("one experiment repeats them");
        let repeats = specs.iter().flat_map(|spec| &spec.repeat);
        let listed: BTreeSet<&str> = repeats.flat_map(|repeat| &repeat.assumed).map(|path| path.get()).collect();
        let machine = spec.machines[0].get();
        for value in tombolo_machine::machine(machine).expect("a machine").values() {
            let number: f64 =
                value.value.split(|c: char| !c.is_ascii_digit()).next().unwrap_or("").parse().unwrap_or(0.0);
            let excepted = NOT_REPEATED.iter().any(|(known, _)| *known == format!("{machine} {}", value.path));
            let due = value.source.contains("assumed") && number > 0.0 && !excepted;
            assert!(
                !due || listed.contains(value.path.as_str()),
                "{name}: {} of {machine}, {}",
                value.path,
                value.value
            );
        }
    }
}

#[test]
fn every_point_of_a_paper_can_be_built() {
    for name in papers() {
        let study = Study::of_paper(name, None, ScaleChoice::Quick).expect("it ships");
        assert!(study.count(false).expect("possible") > 0, "{name}");
        assert_eq!(study.impossible(false).expect("possible"), Vec::<String>::new(), "{name}");
    }
}

#[test]
#[ignore = "deep: every repetition of every point"]
fn every_repetition_of_a_paper_can_be_built() {
    for name in papers() {
        let study = Study::of_paper(name, None, ScaleChoice::Quick).expect("it ships");
        let (usual, robust) = (study.count(false).expect("possible"), study.count(true).expect("possible"));
        assert!(robust > usual, "{name}: {usual} and {robust} points");
        assert_eq!(study.impossible(true).expect("possible"), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn figures_on_request_are_left_out_of_a_whole_paper_at_quick_scale_alone() {
    let points =
        |figure, choice| Study::of_paper("cpelide", figure, choice).expect("ships").count(false).expect("possible");
    let chiplets = points(Some("figure-8-chiplets"), ScaleChoice::Quick);
    assert!(chiplets > points(None, ScaleChoice::Quick), "six machines");
    assert!(chiplets < points(None, ScaleChoice::Paper));
}

#[test]
fn figures_are_found_by_number_and_by_name() {
    for figure in ["8", "figure-8", "hardware-cost"] {
        assert!(Study::of_paper("hmg", Some(figure), ScaleChoice::Quick).is_ok(), "{figure}");
    }
    let unknown = |paper, figure| Study::of_paper(paper, figure, ScaleChoice::Quick).err().expect("none").to_string();
    assert!(
        unknown("hmg", Some("figure-9a")).contains("did you mean figure-9"),
        "{}",
        unknown("hmg", Some("figure-9a"))
    );
    assert!(unknown("uhm", None).contains("no paper is called \"uhm\""), "{}", unknown("uhm", None));
}

#[test]
fn the_list_has_papers_figures_and_sets_of_readings() {
    let names: Vec<String> = list().into_iter().map(|one| one.name).collect();
    for name in ["hmg", "hmg/figure-8", "hmg@text", "hmg@each-way", "cpelide@artifact"] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
}

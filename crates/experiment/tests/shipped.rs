//! Everything that ships resolves: machines, designs, workloads, rows and columns of claims, repetitions.

use std::collections::BTreeSet;
use tombolo_experiment::preset::{list, paper, papers};
use tombolo_experiment::spec::Kind;
use tombolo_experiment::{Plan, ScaleChoice, Study};

/// The scales at which an experiment must resolve.
fn choices() -> [ScaleChoice; 3] {
    [ScaleChoice::Quick, ScaleChoice::Paper, ScaleChoice::Fixed("1/32".parse().expect("a scale"))]
}

#[test]
fn every_experiment_resolves_at_every_scale() {
    for name in papers() {
        let (_, experiments) = paper(name).expect("readable");
        assert!(!experiments.is_empty(), "{name}");
        for (file, spec) in experiments {
            for choice in choices() {
                if let Err(error) = Plan::new(file.clone(), spec.clone(), choice) {
                    panic!("at {choice}: {error}");
                }
            }
        }
    }
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
            // Counters of programs in the tables alone have no rival to flip to.
            let mut directions = spec.claim.iter().filter(|claim| claim.kind == Kind::Direction);
            let judged = directions.any(|claim| claim.mechanism.is_none() && claim.each_row.is_none());
            assert!(!judged || !spec.repeat.is_empty(), "{name}/{}: a direction is repeated", spec.id);
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

#[test]
fn every_point_of_a_paper_can_be_built() {
    for name in papers() {
        let study = Study::of_paper(name, None, ScaleChoice::Quick).expect("it ships");
        let (usual, robust) = (study.count(false).expect("possible"), study.count(true).expect("possible"));
        assert!(usual > 0 && robust > usual, "{name}: {usual} and {robust} points");
        assert_eq!(study.impossible(true).expect("possible"), Vec::<String>::new(), "{name}");
    }
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
    assert!(unknown("umh", None).contains("no paper is called \"umh\""), "{}", unknown("umh", None));
}

#[test]
fn the_list_has_papers_and_figures() {
    let names: Vec<String> = list().into_iter().map(|one| one.name).collect();
    assert!(names.contains(&"hmg".to_owned()) && names.contains(&"hmg/figure-8".to_owned()), "{names:?}");
}

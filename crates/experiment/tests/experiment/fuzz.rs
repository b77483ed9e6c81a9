//! Damaged files cause errors and never panics; a damaged result is never accepted as a result.

use proptest::prelude::*;
use std::sync::Arc;
use tombolo_experiment::reader::File;
use tombolo_experiment::spec::Experiment;
use tombolo_experiment::store::{Lookup, Store};
use tombolo_experiment::workload::only;
use tombolo_experiment::{ExperimentPlan, Pass, Point, PointResult, ScaleChoice};
use tombolo_system::sharing::SharingRecord;

const TEXT: &str = include_str!("../../presets/hmg/figure-12.toml");

/// Returns `text` with some bytes replaced, removed or inserted.
fn damaged(text: &[u8], hits: &[(usize, u8, u8)]) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for (at, kind, byte) in hits {
        let at = at % bytes.len().max(1);
        match kind % 3 {
            0 if at < bytes.len() => bytes[at] = *byte,
            1 if at < bytes.len() => _ = bytes.remove(at),
            _ => bytes.insert(at, *byte),
        }
    }
    bytes
}

fn hits() -> impl Strategy<Value = Vec<(usize, u8, u8)>> {
    prop::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..6)
}

fn point() -> Point {
    let machine = tombolo_machine::machine("hmg-4x4").and_then(|machine| machine.check()).expect("it ships");
    let design = tombolo_design::design("hmg").and_then(|design| design.check()).expect("it ships");
    let workload = Arc::new(only("triad").expect("it ships"));
    Point::new(Arc::new(machine), Arc::new(design), workload, Pass::Sharing, Vec::new()).expect("a point")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_experiment_is_read_or_refused(hits in hits()) {
        let text = String::from_utf8_lossy(&damaged(TEXT.as_bytes(), &hits)).into_owned();
        let file = File { name: "x.toml".into(), text };
        match file.read::<Experiment>() {
            Ok(spec) => {
                let planned = ExperimentPlan::new(file, spec, ScaleChoice::Quick);
                let planned = planned.map(drop).map_err(|error| error.to_string());
                prop_assert!(planned.is_ok() || planned.is_err_and(|message| !message.is_empty()));
            }
            Err(error) => prop_assert!(error.to_string().starts_with("x.toml:"), "{}", error),
        }
    }

    #[test]
    fn a_damaged_result_is_noticed(hits in hits()) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path()).expect("opened");
        let (point, outcome) = (point(), PointResult::Sharing(SharingRecord { loads: 3, ..SharingRecord::default() }));
        store.save(&point, &outcome).expect("saved");
        let file = store.file(point.key());
        let whole = std::fs::read(&file).expect("there");
        std::fs::write(&file, damaged(&whole, &hits)).expect("written");
        match store.load(point.key()).expect("readable") {
            // Blanks around the document change nothing.
            Lookup::Result(found) => prop_assert_eq!(*found, outcome),
            Lookup::Damaged(reason) => prop_assert!(reason.contains("runs again")),
            Lookup::Nothing => prop_assert!(false, "it is there"),
        }
    }
}

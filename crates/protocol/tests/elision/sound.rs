//! Sound labels never go stale: all sequences, of any length, of small kernels on three modules.

use crate::cases::{Case, one_stream, two_streams};

const MOST: usize = 1_000_000;

fn all_are_sound(cases: &[Case]) {
    for case in cases {
        let start = std::time::Instant::now();
        let found = case.search(None, MOST);
        println!(
            "{}: {} kernels, {} states, {:?}",
            case.name,
            case.scenario.kernels.len(),
            found.states,
            start.elapsed()
        );
        assert!(found.complete || found.trace.is_some(), "{}: more states than {MOST}", case.name);
        assert!(found.trace.is_none(), "{}: {:?} of {:?}", case.name, found.trace, case.scenario);
    }
}

#[test]
fn kernels_one_after_the_other_never_read_old_values() {
    all_are_sound(&one_stream());
}

#[test]
fn kernels_side_by_side_never_read_old_values() {
    all_are_sound(&two_streams());
}

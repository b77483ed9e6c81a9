//! Sound labels never go stale: exhaustive search over all sequences, with unlimited length, for small kernels on
//! two or three modules.

use crate::cases::{Case, one_stream, two_streams};

/// Upper bound above every case's number of states.
const MOST: usize = 100_000;

/// Searches all cases. The total number of states is pinned: a change that makes some states unreachable is
/// detected.
fn all_are_sound(cases: &[Case], states: usize) {
    let mut total = 0;
    for case in cases {
        let found = case.search(None, MOST);
        println!("{}: {} kernels, {} states", case.name, case.scenario.kernels.len(), found.states);
        assert!(found.trace.is_none(), "{}: {:?} of {:?}", case.name, found.trace, case.scenario);
        assert!(found.complete, "{}: more states than {MOST}", case.name);
        total += found.states;
    }
    assert_eq!(total, states);
}

#[test]
fn kernels_one_after_the_other_never_read_old_values() {
    all_are_sound(&one_stream(), 71_791);
}

#[test]
fn kernels_side_by_side_never_read_old_values() {
    all_are_sound(&two_streams(), 114_363);
}

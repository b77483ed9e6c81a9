//! Every broken rule is caught under every protocol that has the rule, and the same test passes where none is
//! broken.

use tombolo_check::axiomatic::{Limits, outcomes};
use tombolo_check::explore::{PROTOCOLS, Shape, Sharing, Start, Verdict, layouts, run};
use tombolo_check::litmus::FinalState;
use tombolo_check::verify::mutants::{Mutant, catch, mutants};
use tombolo_protocol::BrokenRule;

#[test]
fn every_broken_rule_is_caught() {
    let all = mutants(PROTOCOLS);
    for report in catch(&all, 2, &()) {
        assert!(report.caught, "{} passes under {}", report.name, report.protocol);
        let by = report.by.expect("it was caught by something");
        println!(
            "| {} | {} | {} | {} | {} | {} |",
            report.name, report.protocol, by.test, by.placement, by.start, by.seen_as
        );
    }
    for rule in BrokenRule::ALL {
        assert!(all.iter().any(|mutant| mutant.rule == rule), "{rule:?} is looked for");
    }
}

#[test]
fn the_same_tests_pass_where_no_rule_is_broken() {
    for mutant in mutants(PROTOCOLS) {
        let Mutant { protocol, test, .. } = &mutant;
        let shape = Shape { gpus: 2, modules_per_gpu: 3, sharing: Sharing::Apart, gpu_homes: true, shared_sms: true };
        let layout = &layouts(&test.program, shape)[0];
        let allowed = outcomes(&test.program, &Limits::default()).ok();
        let forbidden = |state: &FinalState| allowed.as_ref().is_some_and(|allowed| !allowed.contains(state));
        for start in [Start::Cold, Start::Warm] {
            let report = run(&test.program, layout, &mutant.config(start, true), &forbidden).expect("it has a name");
            assert_eq!(report.verdict, Verdict::Clean, "{} under {protocol}", test.program.name);
        }
    }
}

#[test]
fn a_violation_is_shown_as_a_chart() {
    let mut wanted = mutants(&["hmg"]);
    wanted.retain(|mutant| mutant.rule == BrokenRule::AcquireKeepsL1);
    let chart = catch(&wanted, 1, &())[0].trace.clone().expect("a violation has a trace");
    assert!(chart.contains("--->|") && chart.contains("P1: ld.acquire.gpu r0, y"), "{chart}");
    assert!(chart.contains("forbidden outcome: "), "{chart}");
    println!("{chart}");
}

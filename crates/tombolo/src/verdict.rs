//! Output of `check`: a line per test, the traces of violations, and summary counts.

use crate::WRONG_INPUT;
use crate::table::{Cell, Look, Table, count};
use serde::Serialize;
use tombolo_attack::{FailingRun, SkippedTests, TimedReport};
use tombolo_check::verify::mutants::MutantReport;
use tombolo_check::verify::{DesignReport, EventReachability, ModelVerdict, TestReport, TestVerdict};

/// Result of a check.
#[derive(Serialize)]
pub(crate) struct Verification {
    tombolo: &'static str,
    designs: Vec<DesignReport>,
    violations: usize,
    bounded: usize,
    unsupported: usize,
    unreadable: usize,
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mutants: Option<Vec<MutantReport>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timed: Option<Vec<TimedReport>>,
    host: Host,
}

/// Cost of the check on the host.
#[derive(Serialize)]
pub(crate) struct Host {
    pub(crate) wall_s: f64,
    pub(crate) threads: usize,
}

impl Verification {
    pub(crate) fn of(designs: Vec<DesignReport>, mutants: Option<Vec<MutantReport>>, host: Host) -> Verification {
        let count = |verdict| designs.iter().map(|design| design.count(verdict)).sum();
        Verification {
            tombolo: env!("CARGO_PKG_VERSION"),
            violations: count(TestVerdict::Violation),
            bounded: count(TestVerdict::Bounded),
            unsupported: count(TestVerdict::Unsupported),
            unreadable: count(TestVerdict::Unreadable),
            notes: notes(&designs),
            designs,
            mutants,
            timed: None,
            host,
        }
    }

    /// Adds results from timed runs.
    pub(crate) fn with_timed(self, timed: Option<Vec<TimedReport>>) -> Verification {
        Verification { timed, ..self }
    }

    /// Returns the exit status: 1 if a promise is broken or a mutant passes, even if some tests were not run. Otherwise
    /// 2 if a test was not run, unless the answer may be `partial`.
    pub(crate) fn status(&self, partial: bool) -> u8 {
        if !self.holds() {
            1
        } else if !self.is_whole() && !partial {
            WRONG_INPUT
        } else {
            0
        }
    }

    /// True if every promise holds, every mutant is caught, and no timed run is wrong.
    fn holds(&self) -> bool {
        self.violations == 0
            && self.mutants.iter().flatten().all(|mutant| mutant.caught)
            && self.timed.iter().flatten().all(|report| report.verdict.holds())
    }

    /// True if every test was run under every design.
    fn is_whole(&self) -> bool {
        let left_out = |report: &TimedReport| report.not_run.iter().any(|one| !one.is_answer());
        self.designs.iter().flat_map(|design| &design.tests).all(|test| test.verdict.is_answer())
            && !self.timed.iter().flatten().any(left_out)
    }

    /// Returns notes about missing answers: each unreadable test, then the number of tests not run.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Formats the whole result for people.
    pub(crate) fn text(&self, colours: bool) -> String {
        let tested = self.designs.iter().any(|design| !design.tests.is_empty());
        let mut text = String::new();
        if tested {
            text.push_str(&self.tests(colours));
            text.push_str(&self.traces(colours));
            text.push_str(&self.sums(colours));
        }
        if let Some(mutants) = &self.mutants {
            text.push_str(&of_mutants(mutants, colours));
        }
        if let Some(timed) = &self.timed {
            text.push_str(&of_timed(timed, colours));
        }
        text.push_str(&format!("{:.1} s on {} threads\n", self.host.wall_s, self.host.threads));
        text
    }

    /// Formats a line per test. Random programs with an expected result are counted, but not listed.
    fn tests(&self, colours: bool) -> String {
        let headings = ["design", "test", "verdict", "event", "model", "outcomes", "placements", "states"];
        let mut table = Table::new(5).with_headings(headings);
        for design in &self.designs {
            let listed = design.tests.iter().filter(|test| test.file.is_some() || is_notable(test));
            for test in listed {
                table.row(line(&design.design, test));
            }
        }
        table.render(colours)
    }

    fn traces(&self, colours: bool) -> String {
        let mut text = String::new();
        for design in &self.designs {
            for test in design.tests.iter().filter(|test| test.verdict == TestVerdict::Violation) {
                let title = format!("{} under {}", test.name, design.design);
                text.push_str(&format!("\n{}\n", Look::Bad.paint(&title, colours)));
                text.push_str(test.program.as_deref().unwrap_or_default());
                text.push_str(test.trace.as_deref().unwrap_or_default());
            }
        }
        text
    }

    fn sums(&self, colours: bool) -> String {
        let words = TestVerdict::ALL.iter().map(|verdict| verdict.word());
        let mut table = Table::new(1).with_headings(["design", "tests"].into_iter().chain(words).chain(["states"]));
        for design in &self.designs {
            let mut cells = vec![Cell::plain(&design.design), Cell::plain(design.tests.len().to_string())];
            cells.extend(TestVerdict::ALL.iter().map(|verdict| Cell::plain(design.count(*verdict).to_string())));
            cells.push(Cell::plain(count(design.tests.iter().map(|test| test.states).sum())));
            table.row(cells);
        }
        format!("\n{}", table.render(colours))
    }
}

/// Builds the notes from the tests of the first design, because a test is read once for all designs.
fn notes(designs: &[DesignReport]) -> Vec<String> {
    let tests = designs.first().map_or(&[][..], |design| &design.tests);
    let of = |verdict: TestVerdict| tests.iter().filter(move |test| test.verdict == verdict);
    let mut notes: Vec<String> = of(TestVerdict::Unreadable).filter_map(|test| test.reason.clone()).collect();
    let (unreadable, unsupported) = (notes.len(), of(TestVerdict::Unsupported).count());
    if unreadable + unsupported > 0 {
        let (all, left_out) = (tests.len(), unreadable + unsupported);
        let what = if left_out == 1 { "test was" } else { "tests were" };
        let why = format!("{unreadable} unreadable, {unsupported} unsupported");
        notes.push(format!("{left_out} of {all} {what} not run: {why} (--partial accepts that)"));
    }
    notes
}

fn is_notable(test: &TestReport) -> bool {
    !matches!(test.verdict, TestVerdict::Ok | TestVerdict::NotPromised)
}

fn line(design: &str, test: &TestReport) -> Vec<Cell> {
    let look = match test.verdict {
        TestVerdict::Ok => Look::Good,
        TestVerdict::Violation => Look::Bad,
        TestVerdict::Bounded | TestVerdict::Unsupported | TestVerdict::Unreadable | TestVerdict::NotPromised => {
            Look::Plain
        }
    };
    let event = match test.event {
        EventReachability::Reached => "reached",
        EventReachability::Unreached => "unreached",
    };
    let expected = match test.expected {
        Some(ModelVerdict::Allowed) => "allowed",
        Some(ModelVerdict::Forbidden) => "forbidden",
        None => "",
    };
    let verdict = match &test.reason {
        Some(reason) => format!("{}: {reason}", test.verdict.word()),
        None => test.verdict.word().to_owned(),
    };
    vec![
        Cell::plain(design),
        Cell::plain(&test.name),
        Cell::new(verdict, look),
        Cell::plain(event),
        Cell::plain(expected),
        Cell::plain(format!("{} of {}", test.reached, test.allowed)),
        Cell::plain(format!("{} of {}", test.placements, test.placements_of)),
        Cell::plain(count(test.states)),
    ]
}

fn of_mutants(mutants: &[MutantReport], colours: bool) -> String {
    let mut table = Table::new(5).with_headings([
        "broken rule",
        "protocol",
        "tests",
        "random",
        "first",
        "start",
        "placement",
        "seen as",
    ]);
    for mutant in mutants {
        let mut cells = vec![Cell::plain(&mutant.name), Cell::plain(&mutant.configuration)];
        let tests = mutant.by.as_ref().map_or(0, |by| by.tests);
        cells.push(Cell::new(tests.to_string(), if mutant.caught { Look::Good } else { Look::Bad }));
        if let Some(by) = &mutant.by {
            let random = format!("{} of {}", by.random, by.random_tried);
            let first = &by.first;
            cells.extend([&random, &first.test, first.start, &first.placement, &first.seen_as].map(Cell::plain));
        }
        table.row(cells);
    }
    let caught = mutants.iter().filter(|mutant| mutant.caught).count();
    format!("\n{}{caught} of {} broken protocols are caught by tests that ship\n", table.render(colours), mutants.len())
}

/// Formats a line per design, and the first wrong run under each.
fn of_timed(reports: &[TimedReport], colours: bool) -> String {
    let headings = ["design", "verdict", "runs", "tests", "random", "outcomes", "wrong", "not run"];
    let mut table = Table::new(2).with_headings(headings);
    for report in reports {
        let look = if report.verdict.holds() { Look::Good } else { Look::Bad };
        let not_run: usize = report.not_run.iter().map(|one| one.tests).sum();
        table.row(vec![
            Cell::plain(&report.design),
            Cell::new(report.verdict.word(), look),
            Cell::plain(count(report.runs)),
            Cell::plain(report.tests.len().to_string()),
            Cell::plain(report.programs.to_string()),
            Cell::plain(format!("{} of {}", report.outcomes, report.allowed)),
            Cell::plain(report.violations.to_string()),
            Cell::plain(not_run.to_string()),
        ]);
    }
    let mut text = format!("\n{}", table.render(colours));
    for report in reports {
        for SkippedTests { reason, tests } in &report.not_run {
            text.push_str(&format!("{}: {tests} tests are not run: {reason}\n", report.design));
        }
        if let Some(first) = &report.first {
            text.push_str(&of_failing(&report.design, first, colours));
        }
    }
    text
}

/// Formats a wrong run after minimisation.
fn of_failing(design: &str, failing: &FailingRun, colours: bool) -> String {
    let FailingRun { test, seed, seen_as, small, program, setup, trace } = failing;
    let title = Look::Bad.paint(&format!("{test} under {design}, run {seed}: {seen_as}"), colours);
    let again = format!("alone: --timed 1 --seed {seed} --design {design}, with the same tests");
    format!("\n{title}\n{again}; made small, {small}\n{program}{setup}{trace}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_attack::TimedVerdict;
    use tombolo_check::verify::mutants::MutantReport;
    use tombolo_check::verify::{Budget, Case, Design, verify};
    use tombolo_protocol::vi::ProtocolOptions;
    use tombolo_types::Promise;

    const MESSAGE: &str = "PTX message\n{x=0; y=0;}\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n\
        st.weak x,1 | ld.acquire.gpu r0,y ;\n st.release.gpu y,1 | ld.weak r1,x ;\n\
        ~exists (P1:r0 == 1 /\\ P1:r1 == 0)\n";

    /// Verifies the given tests under a design with a broken promise.
    fn broken(texts: &[&str]) -> Verification {
        of("ideal", texts)
    }

    /// Verifies the given tests under a design that runs `protocol` and promises the full memory model.
    fn of(protocol: &str, texts: &[&str]) -> Verification {
        let design = Design::new("boast", protocol, ProtocolOptions::default(), Promise::Ptx).unwrap();
        let cases: Vec<Case> = texts.iter().map(|text| Case::parse("folder/any.litmus", text)).collect();
        Verification::of(verify(&[design], &cases, Budget::default(), 1, &()), None, Host { wall_s: 0.0, threads: 1 })
    }

    #[test]
    fn a_broken_promise_does_not_hold_and_is_shown() {
        let verification = broken(&[MESSAGE]);
        assert_eq!(verification.status(false), 1);
        assert_eq!(verification.violations, 1);
        let text = verification.text(false);
        assert!(text.contains("violation: forbidden outcome") && text.contains("--->|"), "{text}");
        assert!(text.contains("P1:r0=1; P1:r1=0"), "{text}");
    }

    #[test]
    fn tests_that_are_not_run_leave_the_answer_in_parts() {
        let whole = of("hmg", &[MESSAGE]);
        assert!(whole.status(false) == 0 && whole.notes().is_empty());
        let parts = of("hmg", &[MESSAGE, "", &MESSAGE.replace("st.weak x,1", "fence.proxy.alias")]);
        assert_eq!((parts.status(false), parts.status(true)), (2, 0));
        assert_eq!((parts.unreadable, parts.unsupported), (1, 1));
        let [unreadable, count] = parts.notes() else { panic!("{:?}", parts.notes()) };
        assert!(unreadable.starts_with("folder/any.litmus:1:1: expected `PTX`"), "{unreadable}");
        assert_eq!(count, "2 of 3 tests were not run: 1 unreadable, 1 unsupported (--partial accepts that)");
        assert!(parts.text(false).contains("unreadable: folder/any.litmus:1:1"), "{}", parts.text(false));
    }

    #[test]
    fn a_violation_is_the_answer_whatever_was_not_run() {
        let verification = broken(&[MESSAGE, ""]);
        assert_eq!((verification.status(false), verification.status(true)), (1, 1));
    }

    #[test]
    fn a_mutant_that_passes_does_not_hold() {
        let (name, configuration) = ("any".into(), "hmg".into());
        let passed = MutantReport { name, protocol: "hmg", configuration, caught: false, by: None, trace: None };
        let verification = Verification::of(Vec::new(), Some(vec![passed]), Host { wall_s: 0.0, threads: 1 });
        assert_eq!(verification.status(true), 1);
        assert!(verification.text(false).contains("0 of 1 broken protocols"));
    }

    #[test]
    fn a_timed_run_that_is_wrong_does_not_hold_and_is_shown() {
        let report = |verdict| TimedReport {
            design: "hmg".into(),
            verdict,
            runs: 1,
            tests: Vec::new(),
            programs: 1,
            outcomes: 0,
            allowed: 1,
            violations: 1,
            reached: [("coherence.parks".into(), 1)].into(),
            not_run: Vec::new(),
            first: None,
        };
        let of = |verdict| of("hmg", &[]).with_timed(Some(vec![report(verdict)]));
        assert_eq!((of(TimedVerdict::Ok).status(false), of(TimedVerdict::Misbehaves).status(false)), (0, 0));
        assert_eq!((of(TimedVerdict::Violation).status(true), of(TimedVerdict::Blind).status(true)), (1, 1));
        assert!(of(TimedVerdict::Blind).text(false).contains("blind"));
    }
}

//! `check`: verifies design promises by exhaustive exploration with small programs.

use crate::allowed_outcomes::AllowedOutcomes;
use crate::failure::CommandFailure;
use crate::hardware::{print_notes, refuse_twice};
use crate::output::{OutputArguments, complain};
use crate::progress::Progress;
use crate::provenance::provenance;
use crate::threads::ThreadsArgument;
use crate::verdict::{Host, Verification};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use tombolo_attack::{Attack, Target, TimedReport, attack, attack_shipped};
use tombolo_check::explore::{BoundaryPolicy, ReplicaUpdate};
use tombolo_check::verify::mutants::{Mutant, TestEffort, catch, mutants};
use tombolo_check::verify::{
    Budget, Case, Design, Observations, PLACEMENTS_OF_RANDOM, ProgressObserver, answers, compare, read_tests, verify,
};
use tombolo_design::elision::Cpelide;
use tombolo_design::placement::{CopyContents, ExploredSharing};
use tombolo_design::{DesignConfig, Elision, design, list_designs};
use tombolo_experiment::campaign::Watcher;
use tombolo_protocol::catalogue::facts;

const STATUS: &str =
    "Exit status: 0 every test was run and nothing is wrong; 1 a violation was found, or a broken protocol was not
caught, or something was observed that the model does not allow, whatever else happened; 2 the input was wrong, or a
test is unreadable or unsupported (the others are run, and the document is written). `bounded` and `not promised` are answers.";

/// Arguments for `check`.
#[derive(clap::Args)]
#[command(after_help = STATUS)]
pub(crate) struct Arguments {
    /// Design: a name from `list designs`, or the path to a .toml file; may be repeated [default: all that ship]
    #[arg(long = "design", value_name = "D")]
    designs: Vec<String>,
    /// Litmus test, or a folder of .litmus files, searched recursively; may be repeated [default, without --random and
    /// --mutants: the shipped tests]
    #[arg(long = "litmus", value_name = "FILE|DIR")]
    litmus: Vec<PathBuf>,
    /// Checks N random programs, whose final states are compared with the memory model
    #[arg(long = "random", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000), allow_negative_numbers = true)]
    random: Option<u64>,
    /// Seed for the series of random programs; with --timed, the first run
    #[arg(long = "seed", value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Attacks the timing model instead of exploring: N runs per design [without N: 1000] with the given tests, or with
    /// shipped tests and random programs, on random machines with random delays
    #[arg(long = "timed", value_name = "N", num_args = 0..=1, default_missing_value = "1000", value_parser = clap::value_parser!(u64).range(1..=10_000_000), allow_negative_numbers = true)]
    timed: Option<u64>,
    /// Breaks the designs' protocols on purpose, one rule at a time, and shows the shipped tests that catch each: up to
    /// three, or with `all` their number
    #[arg(long = "mutants", value_name = "TESTS", num_args = 0..=1, default_missing_value = "enough")]
    mutants: Option<MutantTests>,
    /// Lists, instead of exploring, all outcomes allowed by the memory model for a litmus test or a folder of tests,
    /// and marks the sequentially consistent outcomes; may be repeated
    #[arg(long = "model", value_name = "FILE|DIR", conflicts_with_all = ["designs", "litmus", "random", "seed", "timed", "mutants"])]
    model: Vec<PathBuf>,
    /// Compares device observations with --model: a table with the columns test, placement, outcome and count, for
    /// files named TEST@PLACEMENT.litmus
    #[arg(long = "observed", value_name = "FILE.csv", requires = "model")]
    observed: Option<PathBuf>,
    /// Accepts unreadable or unsupported tests: the remaining tests decide the exit status
    #[arg(long = "partial")]
    partial: bool,
    #[command(flatten)]
    threads: ThreadsArgument,
    #[command(flatten)]
    output: OutputArguments,
}

/// Number of tests to run against each broken protocol.
#[derive(Clone, Copy, clap::ValueEnum)]
enum MutantTests {
    /// Tests named by the broken rule, then further tests, until three have caught it; random programs if fewer do
    #[value(name = "enough")]
    Enough,
    /// All shipped tests, and all random programs of the series
    #[value(name = "all")]
    All,
}

impl MutantTests {
    fn asked(self) -> TestEffort {
        match self {
            MutantTests::Enough => TestEffort::Enough,
            MutantTests::All => TestEffort::All,
        }
    }
}

impl Arguments {
    /// Runs the check and prints the result.
    pub(crate) fn execute(&self) -> Result<ExitCode, CommandFailure> {
        if !self.model.is_empty() {
            return self.model_answers();
        }
        if self.seed != 1 && self.random.is_none() && self.timed.is_none() {
            let reason = "nothing is drawn; it goes with --random or --timed".to_owned();
            return Err(CommandFailure::Argument { flag: "--seed", value: self.seed.to_string(), reason });
        }
        let described = self.designs()?;
        let designs: Vec<Design> = described.iter().map(checked).collect();
        let cases = self.cases(&designs)?;
        self.output.check(cases.iter().filter_map(|case| case.file.as_deref()))?;
        let broken = self.broken(&designs)?;
        let (threads, started) = (self.threads.count(), Instant::now());
        let explored = if self.timed.is_some() { &[][..] } else { &cases };
        let progress = Progress::over(explored.len() * designs.len() + broken.len(), "tests");
        let reports = verify(&designs, explored, Budget::default(), threads, &progress);
        let caught = self.mutants.map(|tests| catch(&broken, tests.asked(), threads, &progress));
        drop(progress);
        let timed = self.timed.map(|runs| self.attacked(runs, &described, &cases));
        let host = Host { wall_s: started.elapsed().as_secs_f64(), threads };
        let verification = Verification::of(reports, caught, host).with_timed(timed);
        let seeds = (self.random.is_some() || self.timed.is_some()).then_some(self.seed);
        let made = provenance(threads, seeds.as_slice());
        self.output.give(&verification, made, true, |colours| verification.text(colours))?;
        let label = if self.partial { "warning" } else { "error" };
        verification.notes().iter().for_each(|note| complain(&format!("{label}: {note}")));
        Ok(ExitCode::from(verification.status(self.partial)))
    }

    /// Computes the outcomes allowed for the given tests, and compares them with the observations.
    fn model_answers(&self) -> Result<ExitCode, CommandFailure> {
        let mut cases = Vec::new();
        for path in &self.model {
            cases.extend(read_tests(path)?);
        }
        let files = cases.iter().filter_map(|case| case.file.as_deref().map(Path::new));
        self.output.check(files.chain(self.observed.as_deref()))?;
        let observed = self.observed.as_deref().map(Observations::read).transpose()?;
        let (threads, started) = (self.threads.count(), Instant::now());
        let progress = Progress::over(cases.len(), "tests");
        let answers = answers(&cases, threads, &progress);
        drop(progress);
        let compared = observed.map(|observed| compare(&answers, &observed)).transpose()?;
        let host = Host { wall_s: started.elapsed().as_secs_f64(), threads };
        let allowed = AllowedOutcomes::new(answers, compared, host);
        self.output.give(&allowed, provenance(threads, &[]), true, |colours| allowed.text(colours))?;
        let label = if self.partial { "warning" } else { "error" };
        allowed.notes().iter().for_each(|note| complain(&format!("{label}: {note}")));
        Ok(ExitCode::from(allowed.status(self.partial)))
    }

    /// Attacks each design with `runs` timed runs, and returns the reports.
    fn attacked(&self, runs: u64, designs: &[DesignConfig], cases: &[Case]) -> Vec<TimedReport> {
        let targets: Vec<Target> = designs.iter().map(Target::new).collect();
        let named = !self.litmus.is_empty() || self.random.is_some();
        let (seed, threads) = (self.seed, self.threads.count());
        let progress = Progress::over(runs as usize * designs.len(), "runs");
        if named {
            return attack(&Attack { targets: &targets, cases, random: false, seed, runs, threads }, &progress);
        }
        attack_shipped(&targets, (seed, runs), threads, &progress)
    }

    fn designs(&self) -> Result<Vec<DesignConfig>, CommandFailure> {
        let shipped = || list_designs().iter().map(|listed| listed.name.to_owned()).collect();
        let names: Vec<String> = if self.designs.is_empty() { shipped() } else { self.designs.clone() };
        let described = names.iter().map(|name| design(name)).collect::<Result<Vec<_>, _>>()?;
        let checked: Vec<DesignConfig> = described.iter().map(|one| one.check()).collect::<Result<_, _>>()?;
        print_notes(&described);
        refuse_twice("--design", checked.iter().map(|design| design.name.as_str()))?;
        let unexplored = checked.iter().find_map(|design| Some((design, design.placement.sharing().unexplored()?)));
        let Some((design, what)) = unexplored else { return Ok(checked) };
        let reason = format!("{what} are not explored; run --check checks the values of a run");
        Err(CommandFailure::Argument { flag: "--design", value: design.name.clone(), reason })
    }

    /// Returns the test cases. Without explicit cases, these are the shipped tests, including tests with host threads
    /// if the machine of every design has a host.
    fn cases(&self, designs: &[Design]) -> Result<Vec<Case>, CommandFailure> {
        if self.litmus.is_empty() && self.random.is_none() && self.mutants.is_none() {
            let have_host = designs.iter().all(|design| facts(design.protocol()).is_some_and(|facts| facts.host));
            return Ok(if have_host { [Case::shipped(), Case::host()].concat() } else { Case::shipped() });
        }
        let mut cases = Vec::new();
        for path in &self.litmus {
            cases.extend(read_tests(path)?);
        }
        // In a timed run, the seed selects the machine; its programs do not depend on the seed.
        let series = if self.timed.is_some() { tombolo_attack::series::SERIES } else { self.seed };
        let random = |index| Case::random(series, index, PLACEMENTS_OF_RANDOM);
        cases.extend((0..self.random.unwrap_or(0)).map(random));
        Ok(cases)
    }

    /// Returns the broken protocols if requested. Fails if the designs' protocols have no rule to break.
    fn broken(&self, designs: &[Design]) -> Result<Vec<Mutant>, CommandFailure> {
        if self.mutants.is_none() {
            return Ok(Vec::new());
        }
        let protocols: Vec<&str> = designs.iter().map(Design::protocol).collect();
        let broken = mutants(&protocols);
        if broken.is_empty() {
            let reason = "there is no rule in it to break on purpose".to_owned();
            return Err(CommandFailure::Argument { flag: "--mutants", value: protocols.join(", "), reason });
        }
        Ok(broken)
    }
}

/// Extracts the explorable part of a design.
fn checked(design: &DesignConfig) -> Design {
    let policy = match design.elision {
        Elision::Cpelide(Cpelide { table, .. }) => BoundaryPolicy::Table(table),
        Elision::Never(_) => BoundaryPolicy::Release(design.boundary),
    };
    let explored =
        Design::new(&design.name, design.coherence.protocol(), design.options(), design.promises.strongest())
            .expect("a test finds a protocol for every coherence")
            .with_boundary_policy(policy);
    match design.placement.sharing().explored() {
        ExploredSharing::Pages(paging) => explored.moving(paging),
        ExploredSharing::Copied(contents) => explored.copying(replica_update(contents)),
        ExploredSharing::LatestWriter => explored.copying(ReplicaUpdate::LatestWriter),
        ExploredSharing::Placed => explored,
    }
}

/// The explored counterpart of copied contents. Ranges, pages and lines differ in bytes that the sender has not written,
/// which a copy never changes, and in lines that no other GPU accesses. Needed bytes are counted by lines in a run, and
/// by locations in an exploration, which thus sends no more than a run.
fn replica_update(contents: CopyContents) -> ReplicaUpdate {
    match contents {
        CopyContents::Hull | CopyContents::SharedPages | CopyContents::SharedLines => ReplicaUpdate::Written,
        CopyContents::Needed => ReplicaUpdate::Needed,
        CopyContents::Nothing => ReplicaUpdate::Nothing,
    }
}

impl ProgressObserver for Progress {
    fn started(&self, test: &str, design: &str) {
        Watcher::started(self, &format!("{test} under {design}"));
    }

    fn finished(&self, test: &str, design: &str) {
        Watcher::ended(self, &format!("{test} under {design}"));
        Watcher::advanced(self, 1, None);
    }
}

impl tombolo_attack::ProgressObserver for Progress {
    fn advanced(&self, runs: u64) {
        Watcher::advanced(self, runs as usize, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_is_explored_of_every_shipped_design_is_pinned() {
        let pinned = include_str!("../../../check/tests/golden.toml");
        let moving = include_str!("../../../check/tests/explore/paging.rs");
        let copied = include_str!("../../../check/tests/explore/copies.rs");
        for listed in list_designs() {
            let described = design(listed.name).and_then(|tree| tree.check()).expect("it ships");
            let configuration = checked(&described).configuration();
            let is_pinned = match described.placement.sharing().explored() {
                ExploredSharing::Placed => pinned.contains(&format!("\n[\"{configuration}\"]\n")),
                ExploredSharing::Copied(_) | ExploredSharing::LatestWriter => {
                    copied.contains(&format!("\"{configuration}\""))
                }
                ExploredSharing::Pages(_) => moving.contains(&format!("\"{configuration}\"")),
            };
            assert!(is_pinned, "{}: {configuration}", listed.name);
        }
    }

    /// Verdicts and states of a configuration in the pinned results, as in the document's table.
    fn pinned_results(pinned: &str, configuration: &str) -> String {
        let tables: BTreeMap<String, BTreeMap<String, String>> = toml::from_str(pinned).expect("the file is TOML");
        let Some(rows) = tables.get(configuration) else { return "test of its own | ".to_owned() };
        let states = |row: &String| -> u64 {
            let (_, rest) = row.split_once(", ").expect("a row begins with its verdict");
            rest.split(' ').next().and_then(|states| states.parse().ok()).expect("its states")
        };
        let count = |verdict: &str| rows.values().filter(|row| row.starts_with(verdict)).count();
        let verdicts = ["ok", "bounded", "not promised"].map(|verdict| (count(verdict), verdict));
        let listed: Vec<String> =
            verdicts.iter().filter(|(n, _)| *n > 0).map(|(n, verdict)| format!("{n} {verdict}")).collect();
        format!("{} | {:.1}", listed.join(", "), rows.values().map(states).sum::<u64>() as f64 / 1e6)
    }

    #[test]
    fn the_table_of_the_document_lists_what_is_explored_of_every_shipped_design() {
        let pinned = include_str!("../../../check/tests/golden-deep.toml");
        let mut explored: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for listed in list_designs() {
            let described = design(listed.name).and_then(|tree| tree.check()).expect("it ships");
            let (configuration, promise) = (checked(&described).configuration(), described.promises.strongest().word());
            let row = format!("`{configuration}` | {promise} | {}", pinned_results(pinned, &configuration));
            explored.entry(row).or_default().push(listed.name);
        }
        let rows = explored.into_iter().map(|(row, designs)| format!("| {} | {row} |\n", designs.join(", ")));
        let expected: String = rows.collect();
        let document = include_str!("../../../../docs/verification.md");
        assert!(document.contains(&expected), "docs/verification.md is to contain:\n{expected}");
    }
}

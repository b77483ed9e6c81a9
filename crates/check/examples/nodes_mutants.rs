//! x
use tombolo_check::verify::mutants::{Asked, catch, mutants};
fn main() {
    let all = mutants(&["nmoesi"]);
    let t = std::time::Instant::now();
    for report in catch(&all, Asked::Enough, 2, &()) {
        println!(
            "{:32} caught {} {:?}",
            report.name,
            report.caught,
            report.by.map(|by| (by.tests, by.random, by.first.test, by.first.seen_as))
        );
    }
    println!("{:.1} s", t.elapsed().as_secs_f64());
}

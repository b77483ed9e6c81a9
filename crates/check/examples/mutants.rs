//! Which shipped tests catch each broken rule: `cargo run --release -p tombolo-check --example mutants [all] [RULE] [PROTOCOL]`.
use tombolo_check::explore::PROTOCOLS;
use tombolo_check::verify::mutants::{Asked, catch, mutants};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let asked = if arguments.first().is_some_and(|word| word == "all") { Asked::All } else { Asked::Enough };
    let rule = arguments.get(1).cloned().unwrap_or_default();
    let protocol = arguments.get(2).cloned().unwrap_or_default();
    for mutant in mutants(PROTOCOLS) {
        if !format!("{:?}", mutant.rule).contains(&rule) || !mutant.protocol.contains(&protocol) { continue; }
        let started = std::time::Instant::now();
        let report = &catch(&[mutant], asked, 1, &())[0];
        println!("{:<34} {:<22} {:>6.1}s {}", report.name, report.protocol, started.elapsed().as_secs_f64(), serde_json::to_string(&report.by).unwrap());
    }
}

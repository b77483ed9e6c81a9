use std::time::Instant;
use tombolo_check::verify::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let designs: Vec<Design> =
        args[1].split(',').map(|d| Design::new(d, d, Default::default(), d != "ideal").unwrap()).collect();
    let threads: usize = args[2].parse().unwrap();
    let cases: Vec<Case> = if args[3] == "core" {
        Case::core()
    } else if args[3] == "random" {
        let n: u64 = args[4].parse().unwrap();
        (0..n).map(|i| Case::random(7, i + std::env::var("FROM").map_or(0, |f| f.parse::<u64>().unwrap()), 2)).collect()
    } else {
        args[3..].iter().flat_map(|p| read_tests(std::path::Path::new(p)).unwrap()).collect()
    };
    let t0 = Instant::now();
    let (mut total, mut n) = (0, 0);
    let mut whole = 0;
    for case in &cases {
        for d in &designs {
            let t = Instant::now();
            let r = verify(std::slice::from_ref(d), std::slice::from_ref(case), Budget::default(), threads, &());
            let r = &r[0].tests[0];
            total += r.states;
            n += 1;
            if args[3] != "random" || r.verdict == Verdict::Violation {
                println!(
                    "{:28} {:22} {:6}/{:6} placements {:10} states {:?}/{:?} out {}/{} {:?} {} {:.2?}",
                    r.name,
                    d.name,
                    r.placements,
                    r.placements_of,
                    r.states,
                    r.event,
                    r.expected,
                    r.outcomes.len(),
                    r.allowed,
                    r.verdict,
                    r.reason.clone().unwrap_or_default(),
                    t.elapsed()
                );
            }
            if r.verdict == Verdict::Violation {
                println!("{}\n{}", r.program.clone().unwrap_or_default(), r.trace.clone().unwrap());
            }
        }
    }
    println!("total {n} tests {total} states {:.1?}", t0.elapsed());
}

use tombolo_check::verify::{Budget, Case, Design, verify};
fn main() {
    let config = std::env::args().nth(1).unwrap();
    let which = std::env::args().nth(2).unwrap();
    let filter = std::env::args().nth(3).unwrap_or_default();
    let cap: usize = std::env::args().nth(4).and_then(|x| x.parse().ok()).unwrap_or(3_000_000);
    let design = Design::configured(&config).unwrap();
    let mut cases = match which.as_str() {
        "core" => Case::core(),
        "shapes" => Case::shapes(),
        "kernels" => Case::kernels(),
        "host" => Case::host(),
        "polling" => Case::polling(),
        _ => panic!(),
    };
    cases.retain(|case| case.name.contains(&filter));
    let budget = Budget { states_of_placement: cap, states_of_test: 200_000_000, walks: 30, ..Budget::default() };
    let start = std::time::Instant::now();
    let mut total = 0;
    for case in &cases {
        let t = std::time::Instant::now();
        let report = verify(&[design.clone()], std::slice::from_ref(case), budget, 2, &());
        for test in &report[0].tests {
            total += test.states;
            println!(
                "{:40} {:?} {} states {} placements {:.1} s {}",
                test.name,
                test.verdict,
                test.states,
                test.placements,
                t.elapsed().as_secs_f64(),
                test.reason.clone().unwrap_or_default()
            );
            if let Some(trace) = &test.trace {
                println!("{trace}");
            }
        }
    }
    println!("{total} states {:.1} s", start.elapsed().as_secs_f64());
}

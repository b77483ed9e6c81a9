use std::time::Instant;
use tombolo_check::explore::*;
use tombolo_check::{axiomatic, litmus};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let protocol: &'static str = PROTOCOLS.iter().find(|p| **p == args[1]).unwrap();
    let every: usize = args[2].parse().unwrap();
    for f in &args[3..] {
        let l = litmus::read(std::path::Path::new(f)).unwrap();
        let allowed = axiomatic::outcomes(&l.program, &Default::default()).unwrap();
        let gpus = (gpus_of(&l.program) + 1).clamp(2, 4);
        for sharing in Sharing::ALL {
            let all = layouts(
                &l.program,
                Shape {
                    gpus,
                    modules_per_gpu: 2,
                    sharing,
                    gpu_homes: matches!(protocol, "hmg" | "software-hierarchical"),
                    shared_sms: true,
                },
            );
            for start in [Start::Cold, Start::Warm] {
                for po in [false, true] {
                    let t = Instant::now();
                    let (mut states, mut max) = (0, 0);
                    for layout in all.iter().step_by(every.min(all.len().max(1))) {
                        let c = Config {
                            start,
                            reductions: Reductions { partial_order: po, ..Reductions::ALL },
                            max_states: 3_000_000,
                            ..Config::new(protocol)
                        };
                        let r = run(&l.program, layout, &c, &|o| !allowed.contains(o)).unwrap();
                        states += r.states;
                        max = max.max(r.states);
                        if let Verdict::Violated(v) = r.verdict {
                            println!("VIOLATION {v}");
                        }
                    }
                    println!(
                        "{:20} {sharing:?} {start:?} po={po}: {} layouts, {states} states, max {max}, {:.2?}",
                        l.program.name,
                        all.len(),
                        t.elapsed()
                    );
                }
            }
        }
    }
}

//! Which of a warp's results an instruction waits for, told by the time of directed programs.

mod common;

use common::{design, machine, simulate};
use tombolo_system::directed::{Cta, Directed};
use tombolo_types::{Order, Scope};

#[test]
fn polls_are_no_results_of_their_warp() {
    // A load that memory answers after 20 us, a wait whose first polls fail, and 10,000 cycles of arithmetic that need the
    // load's result, not a poll's: one after the other at 1.3 GHz. The flag's line is in the L2.
    let cta = Cta::new()
        .warp(|warp| {
            warp.load([64], Order::WEAK).wait_until(0, 0, Order::relaxed(Scope::Gpu)).use_result(1).compute(10_000);
        })
        .warp(|warp| _ = warp.compute(1300).write([0]).signal(0));
    let touch = Cta::new().warp(|warp| _ = warp.read([0]));
    let program = Directed::new(vec![vec![touch], vec![cta]]);
    let record = simulate(&machine(&["dram.base_latency=20us"]), design("hmg", &[]), program);
    let kernel = &record.kernels[1];
    let (time, polls) = (kernel.end_s - kernel.start_s, record.sm["failed_polls"]);
    assert!(polls > 10, "{polls} polls failed");
    assert!(time > 20e-6 + 10_000.0 / 1.3e9, "the arithmetic began before its operand was there: {time} s");
}

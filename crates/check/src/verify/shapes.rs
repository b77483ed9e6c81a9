//! Litmus shapes by scope: the least programs that show what a protocol may get wrong.

use crate::litmus::{self, Litmus};

/// Where the threads of a shape are, by thread: CTA and GPU. `far` is the GPU of those that synchronise
/// with thread 0 from afar: 1 where the scope is `sys`, else 0.
fn columns(places: &[(u8, u8)]) -> String {
    let cells = places.iter().enumerate().map(|(i, (cta, gpu))| format!("P{i}@cta {cta},gpu {gpu}"));
    cells.collect::<Vec<_>>().join(" | ")
}

fn test(name: &str, scope: &str, places: &[(u8, u8)], rows: &[&str], condition: &str) -> Litmus {
    let rows: String = rows.iter().map(|row| format!("{row} ;\n")).collect();
    let text = format!("PTX {name}.{scope}\n{{}}\n{} ;\n{rows}{condition}\n", columns(places));
    let text = text.replace(".S", &format!(".{scope}"));
    litmus::parse(name, &text).expect("a test reads every shape")
}

/// Message passing.
pub fn mp(scope: &str) -> Litmus {
    let rows = ["st.weak x,1 | ld.acquire.S r0,y", "st.release.S y,1 | ld.weak r1,x"];
    test("MP", scope, &[(0, 0), (1, far(scope))], &rows, "~exists (P1:r0 == 1 /\\ P1:r1 == 0)")
}

/// Message passing to a reader whose flag is a reduction, which returns nothing.
pub fn mp_by_reduction(scope: &str) -> Litmus {
    let rows = ["st.weak x,1 | red.acquire.S.add y,10", "st.release.S y,1 | ld.weak r0,x"];
    test("MP+red", scope, &[(0, 0), (1, far(scope))], &rows, "~exists (y == 11 /\\ P1:r0 == 0)")
}

/// Message passing, with a second reader in the CTA of the first.
pub fn mp_second_reader(scope: &str) -> Litmus {
    let rows = ["st.weak x,1 | ld.acquire.S r0,y | ld.weak r0,x", "st.release.S y,1 | ld.weak r1,x |"];
    let places = [(0, 0), (1, far(scope)), (1, far(scope))];
    test("MP+reader", scope, &places, &rows, "~exists (P1:r0 == 1 /\\ P1:r1 == 0)")
}

/// Message passing to two readers, each in a CTA of its own.
pub fn mp_two_readers(scope: &str) -> Litmus {
    let rows =
        ["st.weak x,1 | ld.acquire.S r0,y | ld.acquire.S r0,y", "st.release.S y,1 | ld.weak r1,x | ld.weak r1,x"];
    let condition = "~exists (P1:r0 == 1 /\\ P1:r1 == 0 \\/ P2:r0 == 1 /\\ P2:r1 == 0)";
    test("MP+readers", scope, &[(0, 0), (1, far(scope)), (2, far(scope))], &rows, condition)
}

/// Message passing; the reader has loaded the data before.
pub fn mp_reload(scope: &str) -> Litmus {
    let rows = ["st.weak x,1 | ld.weak r2,x", "st.release.S y,1 | ld.acquire.S r0,y", "| ld.weak r1,x"];
    test("MP+reload", scope, &[(0, 0), (1, far(scope))], &rows, "~exists (P1:r0 == 1 /\\ P1:r1 == 0)")
}

/// Store buffering.
pub fn sb(scope: &str) -> Litmus {
    let rows = ["st.weak x,1 | st.weak y,1", "fence.sc.S | fence.sc.S", "ld.weak r0,y | ld.weak r0,x"];
    test("SB", scope, &[(0, 0), (1, far(scope))], &rows, "~exists (P0:r0 == 0 /\\ P1:r0 == 0)")
}

/// Coherence: a thread reads its own write or a later one.
pub fn cowr(scope: &str) -> Litmus {
    let rows = ["st.relaxed.S x,1 | st.relaxed.S x,2", "ld.relaxed.S r0,x |"];
    test("CoWR", scope, &[(0, 0), (1, far(scope))], &rows, "~exists (P0:r0 == 0)")
}

/// The same after a load of its own, all weak.
pub fn cowr_after_load(scope: &str) -> Litmus {
    let rows = ["ld.weak r1,x | st.weak x,2", "st.weak x,1 |", "ld.weak r0,x |"];
    test("CoRWR", scope, &[(0, 0), (1, far(scope))], &rows, "~exists (P0:r0 == 0)")
}

/// Write to read causality.
pub fn wrc(scope: &str) -> Litmus {
    let rows = [
        "st.relaxed.S x,1 | ld.relaxed.S r0,x | ld.acquire.S r0,y",
        "                 | st.release.S y,1   | ld.weak r1,x",
    ];
    let places = [(0, 0), (1, far(scope)), (2, 0)];
    test("WRC", scope, &places, &rows, "~exists (P1:r0 == 1 /\\ P2:r0 == 1 /\\ P2:r1 == 0)")
}

/// Independent reads of independent writes.
pub fn iriw(scope: &str) -> Litmus {
    let rows = [
        "st.relaxed.S x,1 | st.relaxed.S y,1 | ld.relaxed.S r0,x | ld.relaxed.S r0,y",
        "                 |                  | fence.sc.S         | fence.sc.S",
        "                 |                  | ld.relaxed.S r1,y  | ld.relaxed.S r1,x",
    ];
    let places = [(0, 0), (1, far(scope)), (2, 0), (3, far(scope))];
    let condition = "~exists (P2:r0 == 1 /\\ P2:r1 == 0 /\\ P3:r0 == 1 /\\ P3:r1 == 0)";
    test("IRIW", scope, &places, &rows, condition)
}

/// Transitive message passing: a `.gpu` release, then another thread's `.sys` release.
pub fn isa2() -> Litmus {
    let rows = [
        "st.weak x,1        | ld.acquire.gpu r0,y | ld.acquire.sys r0,z",
        "st.release.gpu y,1 | st.release.sys z,1  | ld.weak r1,x",
    ];
    let condition = "~exists (P1:r0 == 1 /\\ P2:r0 == 1 /\\ P2:r1 == 0)";
    test("ISA2", "sys", &[(0, 0), (1, 0), (2, 1)], &rows, condition)
}

/// Write to read causality, from afar by `.sys`, then on by `.gpu`.
pub fn wrc_mixed() -> Litmus {
    let rows = [
        "st.relaxed.sys x,1 | ld.relaxed.sys r0,x | ld.acquire.gpu r0,y",
        "                   | st.release.gpu y,1  | ld.weak r1,x",
    ];
    let condition = "~exists (P1:r0 == 1 /\\ P2:r0 == 1 /\\ P2:r1 == 0)";
    test("WRC+gpu", "sys", &[(0, 0), (1, 1), (2, 1)], &rows, condition)
}

/// Two increments: none is lost.
pub fn atomics(scope: &str) -> Litmus {
    let rows = ["atom.relaxed.S.add r0,x,1 | atom.relaxed.S.add r0,x,1"];
    test("Atomics", scope, &[(0, 0), (1, far(scope))], &rows, "~exists (P0:r0 == 0 /\\ P1:r0 == 0)")
}

/// A release of one thread writes back what another has written to the same line and is about to read.
pub fn flush_under_miss(scope: &str) -> Litmus {
    let rows = ["st.weak x,1 | st.weak y,3", "fence.sc.S | ld.acquire.S r0,y", "st.weak x,2 | ld.weak r1,x"];
    test("Flush", scope, &[(0, 0), (1, far(scope))], &rows, "~exists (P1:r0 == 0)")
}

/// Polling a flag: the store becomes visible in the end.
pub fn polling(scope: &str) -> Litmus {
    let rows = ["st.relaxed.S x,1 | LC00:", "| ld.relaxed.S r0,x", "| bne r0,1,LC00"];
    test("Polling", scope, &[(0, 0), (1, far(scope))], &rows, "~exists (P1:r0 == 0)")
}

/// The six shapes at one scope.
pub fn six(scope: &str) -> Vec<Litmus> {
    vec![mp(scope), mp_second_reader(scope), sb(scope), cowr(scope), wrc(scope), iriw(scope)]
}

fn far(scope: &str) -> u8 {
    u8::from(scope == "sys")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_read_back_as_it_is() {
        let more = [
            mp_by_reduction("sys"),
            isa2(),
            wrc_mixed(),
            polling("gpu"),
            flush_under_miss("sys"),
            atomics("gpu"),
            mp_reload("sys"),
        ];
        for shape in ["gpu", "sys"].into_iter().flat_map(six).chain(more) {
            assert_eq!(litmus::parse("shape", &shape.to_string()).unwrap(), shape);
        }
    }
}

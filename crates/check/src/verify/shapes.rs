//! Litmus shapes by scope: the smallest programs that expose possible protocol errors. Most shapes ship in test form
//! ([`Case::shapes`](super::Case::shapes)), from files in `tests/data/shapes`.

use super::corpus::{polling_test, shape_test};
use crate::litmus::{self, Litmus};

/// Placement row for a shape, with CTA and GPU by thread. `far` is the GPU for threads with remote synchronisation with
/// thread 0: 1 if the scope is `sys`, else 0.
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
    shape_test(&format!("MP.{scope}"))
}

/// Message passing to a reader whose flag access is a reduction, which returns nothing.
pub fn mp_by_reduction(scope: &str) -> Litmus {
    shape_test(&format!("MP+red.{scope}"))
}

/// Message passing, with a second reader in the first reader's CTA.
pub fn mp_second_reader(scope: &str) -> Litmus {
    shape_test(&format!("MP+reader.{scope}"))
}

/// Message passing to two readers, each in a separate CTA.
pub fn mp_two_readers(scope: &str) -> Litmus {
    shape_test(&format!("MP+readers.{scope}"))
}

/// Message passing; the reader has loaded the data before.
pub fn mp_reload(scope: &str) -> Litmus {
    shape_test(&format!("MP+reload.{scope}"))
}

/// Store buffering.
pub fn sb(scope: &str) -> Litmus {
    let rows = ["st.weak x,1 | st.weak y,1", "fence.sc.S | fence.sc.S", "ld.weak r0,y | ld.weak r0,x"];
    test("SB", scope, &[(0, 0), (1, far(scope))], &rows, "~exists (P0:r0 == 0 /\\ P1:r0 == 0)")
}

/// Coherence: a thread reads its own write or a later write.
pub fn cowr(scope: &str) -> Litmus {
    shape_test(&format!("CoWR.{scope}"))
}

/// Coherence after a load by the writing thread, all accesses weak.
pub fn cowr_after_load(scope: &str) -> Litmus {
    shape_test(&format!("CoRWR.{scope}"))
}

/// Write to read causality.
pub fn wrc(scope: &str) -> Litmus {
    shape_test(&format!("WRC.{scope}"))
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
    shape_test("ISA2.sys")
}

/// Write to read causality, first remotely by `.sys`, then further by `.gpu`.
pub fn wrc_mixed() -> Litmus {
    shape_test("WRC+gpu.sys")
}

/// Two increments: none is lost.
pub fn atomics(scope: &str) -> Litmus {
    shape_test(&format!("Atomics.{scope}"))
}

/// A thread's release writes back bytes that another thread has written to the line and is about to read.
pub fn flush_under_miss(scope: &str) -> Litmus {
    shape_test(&format!("Flush.{scope}"))
}

/// Polling a flag: the store becomes visible eventually.
pub fn polling(scope: &str) -> Litmus {
    polling_test(&format!("Polling.{scope}"))
}

/// The six shapes at a given scope. Two variants of message passing, store buffering, coherence, causality and
/// independent reads.
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

//! A test per clause of the model: a program that the clause decides.

use tombolo_check::axiomatic::{Limits, ModelError, outcomes};
use tombolo_check::litmus::{Litmus, parse};

fn litmus(text: &str) -> Litmus {
    parse("test", &format!("PTX test {{}}\n{text}")).unwrap_or_else(|error| panic!("{error}"))
}

fn allowed(text: &str) -> bool {
    let litmus = litmus(text);
    let outcomes = outcomes(&litmus.program, &Limits::default()).unwrap_or_else(|error| panic!("{error}"));
    outcomes.allow_event(&litmus)
}

/// Message passing from P0 to P1 in a different CTA on the GPU, with the given operations around the flag.
fn stale_message(release: &str, acquire: &str) -> bool {
    allowed(&format!(
        "P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
         st.weak x, 1 | ;
         {release} | {acquire} ;
         | ld.weak r9, x ;
         exists P1:r0 = 1 /\\ P1:r9 = 0"
    ))
}

#[test]
fn heads_of_the_patterns_must_include_each_other() {
    assert!(!stale_message("fence.acq_rel.gpu ; st.relaxed.gpu y, 1", "ld.acquire.gpu r0, y"));
    assert!(stale_message("fence.acq_rel.cta ; st.relaxed.gpu y, 1", "ld.acquire.gpu r0, y"));
    assert!(!stale_message("st.release.gpu y, 1", "ld.relaxed.gpu r0, y ; | fence.acq_rel.gpu"));
    assert!(stale_message("st.release.gpu y, 1", "ld.relaxed.gpu r0, y ; | fence.acq_rel.cta"));
}

#[test]
fn the_flag_itself_must_be_strong() {
    assert!(stale_message("fence.acq_rel.gpu ; st.weak y, 1", "ld.acquire.gpu r0, y"));
    assert!(stale_message("st.release.gpu y, 1", "ld.weak r0, y ; | fence.acq_rel.gpu"));
}

#[test]
fn a_release_write_covers_later_strong_writes_of_its_location_only() {
    assert!(!stale_message("st.release.gpu y, 2 ; st.relaxed.gpu y, 1", "ld.acquire.gpu r0, y"));
    assert!(stale_message("st.release.gpu z, 2 ; st.relaxed.gpu y, 1", "ld.acquire.gpu r0, y"));
    assert!(!stale_message("st.release.gpu y, 2 ; st.relaxed.gpu y, 1", "ld.relaxed.gpu r0, y ; | fence.acq_rel.gpu"));
    assert!(stale_message("st.release.gpu z, 2 ; st.relaxed.gpu y, 1", "ld.relaxed.gpu r0, y ; | fence.acq_rel.gpu"));
}

#[test]
fn an_acquire_read_covers_earlier_strong_reads_of_its_location_only() {
    // The acquire reads P2's plain overwrite of the flag.
    let text = |acquired: &str| {
        format!(
            "P0@cta 0,gpu 0      | P1@cta 1,gpu 0             | P2@cta 2,gpu 0      ;
             st.weak x, 1        | ld.relaxed.gpu r0, y       | st.relaxed.gpu y, 2 ;
             st.release.gpu y, 1 | ld.acquire.gpu r1, {acquired} | st.relaxed.gpu z, 2 ;
                                 | ld.weak r2, x              | ;
             exists P1:r0 = 1 /\\ P1:r1 = 2 /\\ P1:r2 = 0"
        )
    };
    assert!(!allowed(&text("y")));
    assert!(allowed(&text("z")));
    assert!(stale_message("fence.acq_rel.gpu ; st.relaxed.gpu y, 1", "ld.relaxed.gpu r0, y ; | ld.acquire.gpu r1, z"));
}

#[test]
fn an_sc_fence_is_an_acquire_release_fence() {
    assert!(!stale_message("fence.sc.gpu ; st.relaxed.gpu y, 1", "ld.acquire.gpu r0, y"));
    assert!(!stale_message("st.release.gpu y, 1", "ld.relaxed.gpu r0, y ; | fence.sc.gpu"));
}

#[test]
fn observation_passes_through_atomics() {
    let text = |first: &str, second: &str| {
        format!(
            "P0@cta 0,gpu 0      | P1@cta 1,gpu 0 | P2@cta 2,gpu 0       ;
             st.weak x, 1        | {first}        | ld.acquire.gpu r0, y ;
             st.release.gpu y, 1 | {second}       | ld.weak r1, x        ;
             exists P1:r0 = 1 /\\ P2:r0 = 2 /\\ P2:r1 = 0"
        )
    };
    assert!(!allowed(&text("atom.relaxed.gpu.add r0, y, 1", "")));
    assert!(allowed(&text("ld.relaxed.gpu r0, y", "st.relaxed.gpu y, 2")));
}

#[test]
fn sc_fences_forbid_store_buffering_within_their_scope() {
    let text = |fence: &str| {
        format!(
            "P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
             st.weak x, 1   | st.weak y, 1   ;
             {fence}        | {fence}        ;
             ld.weak r0, y  | ld.weak r0, x  ;
             exists P0:r0 = 0 /\\ P1:r0 = 0"
        )
    };
    assert!(!allowed(&text("fence.sc.gpu")));
    assert!(allowed(&text("fence.sc.cta")));
    assert!(allowed(&text("fence.acq_rel.gpu")));
}

/// Load buffering: `stores(location)` are the instructions that follow each thread's load into r0.
fn load_buffering(stores: impl Fn(&str) -> Vec<String>) -> bool {
    let rows: String = stores("y").iter().zip(stores("x")).map(|(one, other)| format!("{one} | {other} ;\n")).collect();
    allowed(&format!(
        "P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
         ld.weak r0, x  | ld.weak r0, y  ;
         {rows}
         exists P0:r0 = 1 /\\ P1:r0 = 1"
    ))
}

#[test]
fn values_do_not_come_out_of_thin_air() {
    let lines = |text: &str, location: &str| text.lines().map(|line| line.replace("LOC", location)).collect();
    let possible = |text: &str| load_buffering(|location| lines(text, location));
    assert!(possible("st.weak LOC, 1"));
    assert!(possible("ld r1, 1\nst.weak LOC, r1"));
    assert!(!possible("st.weak LOC, r0"));
    assert!(!possible("sub r1, r0, r0\nadd r1, r1, 1\nst.weak LOC, r1"));
    assert!(!possible("bne r0, 1, LC00\nst.weak LOC, 1\nLC00:"));
}

#[test]
fn a_barrier_synchronises_the_same_occurrence_within_a_cta() {
    let stale = |first: &str, cta: u32, second: &str| {
        allowed(&format!(
            "P0@cta 0,gpu 0 | P1@cta {cta},gpu 0 ;
             st.weak x, 1   | bar.cta.sync {second} ;
             bar.cta.sync {first} | ld.weak r0, x ;
             exists P1:r0 = 0"
        ))
    };
    assert!(!stale("3", 0, "3"));
    assert!(stale("3", 1, "3"));
    assert!(stale("3, 32", 0, "2, 32"), "each opens for its one thread");
    assert!(!stale("3", 0, "2"), "no execution ends");
}

#[test]
fn barriers_of_different_kernels_do_not_synchronise() {
    let reads = |value: u32| {
        allowed(&format!(
            "P0@cta 0,gpu 0  | P1@cta 0,gpu 0  ;
             bar.cta.sync 0  | kernel.boundary ;
             ld.weak r0, x   | st.weak x, 1    ;
             kernel.boundary | bar.cta.sync 0  ;
             exists P0:r0 = {value}"
        ))
    };
    assert!(reads(0));
    assert!(!reads(1));
}

#[test]
fn only_the_scope_of_the_system_reaches_the_host_and_from_one_host_thread_another() {
    let stale = |first: &str, second: &str, release: &str, acquire: &str| {
        allowed(&format!(
            "P0@{first} | P1@{second} ;
             st.weak x, 1 | ;
             {release} y, 1 | {acquire} r0, y ;
             | ld.weak r1, x ;
             exists P1:r0 = 1 /\\ P1:r1 = 0"
        ))
    };
    let gpu = "cta 0,gpu 0";
    assert!(!stale("host", gpu, "st.release.sys", "ld.acquire.sys"));
    assert!(!stale(gpu, "host", "st.release.sys", "ld.acquire.sys"));
    assert!(!stale("host", "host", "st.release.sys", "ld.acquire.sys"));
    for narrow in ["cta", "gpu"] {
        assert!(stale("host", gpu, "st.release.sys", &format!("ld.acquire.{narrow}")), "{narrow}");
        assert!(stale(gpu, "host", &format!("st.release.{narrow}"), "ld.acquire.sys"), "{narrow}");
    }
}

#[test]
fn a_kernel_boundary_synchronises_all_threads() {
    let stale = |reads: &str| {
        allowed(&format!(
            "P0@cta 0,gpu 0  | P1@cta 0,gpu 1 ;
             st.weak x, 1    | {reads} ;
             kernel.boundary | kernel.boundary ;
                             | ld.weak r1, x ;
             exists P1:r1 = 0"
        ))
    };
    assert!(!stale(""));
    assert!(!stale("ld.weak r0, x"));
    let before = "P0@cta 0,gpu 0 | P1@cta 0,gpu 1 ;
                  st.weak x, 1    | ld.weak r0, x   ;
                  kernel.boundary | kernel.boundary ;
                  exists P1:r0 = 0";
    assert!(allowed(before), "within a kernel nothing is ordered");
}

#[test]
fn occurrences_of_one_barrier_are_told_apart() {
    let after = |count: usize| {
        let rows = "| bar.cta.sync 0 ;\n".repeat(count);
        allowed(&format!(
            "P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;
             bar.cta.sync 0 | ;
             st.weak x, 1   | ;
             bar.cta.sync 0 | ;
             {rows}
                            | ld.weak r0, x ;
             exists P1:r0 = 0"
        ))
    };
    assert!(after(1), "the first barrier is passed before the store");
    assert!(!after(2));
}

#[test]
fn branches_choose_what_is_executed() {
    let text = |condition: &str| {
        format!(
            "P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
             st.weak x, 1 | ld.weak r0, x ;
             | beq r0, 1, LC01 ;
             | ld r1, 10 ;
             | goto LC02 ;
             | LC01: ld r1, 20 ;
             | LC02: ;
             {condition}"
        )
    };
    assert!(!allowed(&text("forall (P1:r0 = 0 /\\ P1:r1 = 10) \\/ (P1:r0 = 1 /\\ P1:r1 = 20)")));
    assert!(allowed(&text("exists P1:r1 = 10")));
    assert!(allowed(&text("exists P1:r1 = 20")));
}

#[test]
fn a_location_may_end_with_any_write_that_nothing_must_follow() {
    // P2 reads P1's write after a message about P0's write: nevertheless P0's write may be final.
    let text = |kept: u32| {
        format!(
            "P0@cta 0,gpu 0      | P1@cta 1,gpu 0 | P2@cta 2,gpu 0       ;
             st.weak x, 1        | st.weak x, 2   | ld.acquire.gpu r0, y ;
             st.release.gpu y, 1 |                | ld.weak r1, x        ;
             exists P2:r0 = 1 /\\ P2:r1 = 2 /\\ x = {kept}"
        )
    };
    assert!(allowed(&text(1)));
    assert!(allowed(&text(2)));
}

#[test]
fn a_failed_cas_writes_back_what_it_read() {
    let text = |compare: u32| {
        format!(
            "P0@cta 0,gpu 0 ;
             st.weak x, 5 ;
             atom.relaxed.gpu.cas r0, x, {compare}, 7 ;
             forall P0:r0 = 5 /\\ x = {}",
            if compare == 5 { 7 } else { 5 }
        )
    };
    assert!(!allowed(&text(5)));
    assert!(!allowed(&text(6)));
}

#[test]
fn a_poll_ends_with_its_last_load_and_acquires_what_that_load_reads() {
    let text = |acquire: &str, kept: u32| {
        format!(
            "P0@cta 0,gpu 0      | P1@cta 1,gpu 0         ;
             st.weak x, 1        | LC00:                  ;
             st.release.gpu y, 1 | ld.{acquire}.gpu r0, y ;
                                 | bne r0, 1, LC00        ;
                                 | ld.weak r1, x          ;
             exists P1:r0 = 1 /\\ P1:r1 = {kept}"
        )
    };
    assert!(allowed(&text("acquire", 1)) && !allowed(&text("acquire", 0)));
    assert!(allowed(&text("relaxed", 1)) && allowed(&text("relaxed", 0)));
    let outcomes = outcomes(&litmus(&text("acquire", 1)).program, &Limits::default()).unwrap();
    assert_eq!((outcomes.states().len(), outcomes.repetitions), (1, None));
}

#[test]
fn other_loops_are_unrolled_to_a_number_of_repetitions_that_fits() {
    let repeated = |rows: &str| {
        let text = format!("P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ; LC00: | ; {rows} bne r0, 1, LC00 | ; exists x=0");
        outcomes(&litmus(&text).program, &Limits::default())
            .map(|outcomes| (outcomes.states().len(), outcomes.repetitions))
    };
    assert_eq!(repeated("atom.relaxed.gpu.or r0, x, 0 | st.weak x, 1 ;"), Ok((1, Some(3))), "it ends when it reads 1");
    let counts = repeated("ld.weak r0, x | st.weak x, 1 ; add r1, r1, 1 | ;");
    assert_eq!(counts, Ok((4, Some(3))), "r1 counts the iterations, 1 to 4");
    let long = format!("atom.relaxed.gpu.or r0, x, 0 | st.weak x, 1 ; {}", "ld.weak r5, y | ; ".repeat(18));
    assert_eq!(
        repeated(&long).map(|(_, repetitions)| repetitions),
        Ok(Some(2)),
        "three repetitions have more events than fit"
    );
}

#[test]
fn a_barrier_with_a_count_orders_the_threads_that_it_counts() {
    // Dat3M's tests quorum1-fail and quorum2-fail: all three threads meet.
    let three = "P0@cta 0,gpu 0 | P1@cta 0,gpu 0 | P2@cta 0,gpu 0";
    let all = "st.weak x, 1 | bar.sync 1, 96 | bar.sync 1, 96 ; bar.sync 1, 96 | ld.weak r0, x | ;";
    assert!(!allowed(&format!("{three} ; {all} exists P1:r0 = 0")));
    let read_first = "ld.weak r0, x | bar.sync 1, 96 | bar.sync 1, 96 ; bar.sync 1, 96 | st.weak x, 1 | ;";
    assert!(!allowed(&format!("{three} ; {read_first} exists P0:r0 = 1")));
    // With a fourth thread and pairs, P1 may meet P0 or another.
    let pairs = "st.weak x, 1 | bar.sync 1, 64 | bar.sync 1, 64 | bar.sync 1, 64 ;
        bar.sync 1, 64 | ld.weak r0, x | | ;";
    assert!(allowed(&format!("{three} | P3@cta 0,gpu 0 ; {pairs} exists P1:r0 = 0")));
    assert!(allowed(&format!("{three} | P3@cta 0,gpu 0 ; {pairs} exists P1:r0 = 1")));
}

#[test]
fn an_arrival_orders_what_precedes_it_and_waits_for_nothing() {
    let produced = |first: &str, second: &str| {
        format!(
            "P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;
             st.weak x, 1   | {second}       ;
             {first}        | ld.weak r1, x  ;
             ld.weak r0, y  | st.weak y, 1   ;
             exists"
        )
    };
    let text = produced("bar.arrive 0, 64", "bar.sync 0, 64");
    assert!(!allowed(&format!("{text} P1:r1 = 0")), "the consumer waits for the producer");
    assert!(allowed(&format!("{text} P0:r0 = 1")) && allowed(&format!("{text} P0:r0 = 0")));
    let reversed = produced("bar.sync 0, 64", "bar.arrive 0, 64");
    assert!(allowed(&format!("{reversed} P1:r1 = 0")), "P1 does not wait");
}

#[test]
fn atomics_find_extremes_and_count() {
    let ends = |rows: &str, value: i64| allowed(&format!("P0@cta 0,gpu 0 ; {rows} exists x = {value}"));
    assert!(ends("st.weak.u32 [x], 5 ; red.min.u32 [x], 3 ;", 3));
    assert!(ends("st.weak.u32 [x], 5 ; red.min.u32 [x], 7 ;", 5));
    assert!(ends("st.weak.s32 [x], -5 ; red.max.s32 [x], -7 ;", -5));
    assert!(ends("st.weak.u32 [x], 5 ; red.inc.u32 [x], 7 ;", 6));
    assert!(ends("st.weak.u32 [x], 7 ; red.inc.u32 [x], 7 ;", 0));
    assert!(ends("st.weak.u32 [x], 9 ; red.inc.u32 [x], 7 ;", 0));
    assert!(ends("st.weak.u32 [x], 5 ; red.dec.u32 [x], 7 ;", 4));
    assert!(ends("red.dec.u32 [x], 7 ;", 7));
    assert!(ends("st.weak.u32 [x], 9 ; red.dec.u32 [x], 7 ;", 7));
    let tickets = "P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
        atom.relaxed.gpu.inc r0, x, 1 | atom.relaxed.gpu.inc r0, x, 1 ; exists P0:r0 = P1:r0";
    assert!(!allowed(tickets));
}

#[test]
fn what_the_model_cannot_answer_is_an_error() {
    let run = |text: &str, candidates| outcomes(&litmus(text).program, &Limits { candidates });
    let long = format!("P0@cta 0,gpu 0 ; {} exists x=0", "ld.weak r0, x ;".repeat(64));
    assert_eq!(run(&long, 10), Err(ModelError::Size { events: 65, limit: 64 }));
    let to_the_end = format!("P0@cta 0,gpu 0 ; {} LC00: ; exists P0:r0=0", "beq r0, 1, LC00 ;".repeat(13));
    assert!(run(&to_the_end, 100).is_ok(), "14 paths");
    let pairs: String = (0..13).map(|at| format!("beq r0, 1, LC{at} ; ld r0, 2 ; LC{at}: ;")).collect();
    let doubling = format!("P0@cta 0,gpu 0 ; {pairs} exists P0:r0=0");
    assert_eq!(run(&doubling, 10), Err(ModelError::Paths { limit: 4096 }));
    let racy = "P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ; st.weak x, 1 | ld.weak r0, x ; exists x=0";
    assert!(run(racy, 2).is_ok());
    assert_eq!(run(racy, 1), Err(ModelError::Budget { limit: 1 }));
}

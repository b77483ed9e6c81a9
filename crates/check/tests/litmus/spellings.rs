//! PTX spellings with the meaning of another spelling, and recognised but unsupported PTX constructs.

use tombolo_check::axiomatic::{Limits, outcomes};
use tombolo_check::litmus::{Litmus, LitmusError, parse};

const PLACEMENTS: &str = "P0@cta 0,gpu 0 | P1@cta 1,gpu 0";

fn text(placements: &str, rows: &str) -> String {
    format!("PTX test\n{{x=0; y=0; P1:r0=0; P1:r1=0;}}\n {placements} ;\n {rows}\nexists (P1:r0 == 1 /\\ P1:r1 == 0)")
}

fn read(placements: &str, rows: &str) -> Litmus {
    parse("file", &text(placements, rows)).unwrap_or_else(|error| panic!("{error}"))
}

/// An instruction of P1, in printed form.
fn printed(instruction: &str) -> String {
    let program = read(PLACEMENTS, &format!("| {instruction} ;")).program;
    program.instruction(&program.threads[1], &program.threads[1].code[0]).to_string()
}

fn refusal(instruction: &str) -> LitmusError {
    parse("file", &text(PLACEMENTS, &format!("| {instruction} ;"))).expect_err(instruction)
}

/// True if the model allows a message to pass from P0 to P1 without its data. Uses message passing with the given store
/// and load.
fn loses_its_message(placements: &str, store: &str, load: &str) -> bool {
    loses(placements, &format!("st.weak x,1 | {load} r0,y ;\n {store} y,1 | ld.weak r1,x ;"))
}

fn loses(placements: &str, rows: &str) -> bool {
    let litmus = read(placements, rows);
    outcomes(&litmus.program, &Limits::default()).expect("it is small").allow_event(&litmus)
}

#[test]
fn what_may_be_left_out_or_written_otherwise_reads_as_the_full_spelling() {
    let spellings = [
        ("ld.volatile r1, x", "ld.relaxed.sys r1, x"),
        ("st.volatile x, r0", "st.relaxed.sys x, r0"),
        ("ld.volatile.global r1, [x]", "ld.relaxed.sys r1, x"),
        ("membar.cta", "fence.sc.cta"),
        ("membar.gl", "fence.sc.gpu"),
        ("membar.sys", "fence.sc.sys"),
        ("fence.gpu", "fence.acq_rel.gpu"),
        ("fence.acquire.sys", "fence.acquire.sys"),
        ("fence.release.cta", "fence.release.cta"),
        ("ld.global r1, x", "ld.weak r1, x"),
        ("ld r1, [x]", "ld.weak r1, x"),
        ("st [x], 1", "st.weak x, 1"),
        ("st.weak.global [x], 1", "st.weak x, 1"),
        ("atom.add r1, [x], 1", "atom.relaxed.gpu.add r1, x, 1"),
        ("atom.sys.exch r1, x, 1", "atom.relaxed.sys.exch r1, x, 1"),
        ("atom.acquire.cas r1, x, 0, 1", "atom.acquire.gpu.cas r1, x, 0, 1"),
        ("red.add x, 1", "red.relaxed.gpu.add x, 1"),
        ("red.release.cta.global.or x, 1", "red.release.cta.or x, 1"),
        ("bar.sync 2", "bar.cta.sync 2"),
        ("barrier.sync 2", "bar.cta.sync 2"),
        ("barrier.cta.sync.aligned 2", "bar.cta.sync 2"),
        ("bar.sync 2, 96", "bar.cta.sync 2, 96"),
        ("bar.sync 2, 0", "bar.cta.sync 2"),
        ("barrier.arrive.aligned 2, 96", "bar.cta.arrive 2, 96"),
        ("atom.max.u32 r1, [x], 1", "atom.relaxed.gpu.max.u32 r1, x, 1"),
        ("red.gpu.min.s64 [x], -1", "red.relaxed.gpu.min.s64 x, -1"),
    ];
    for (spelling, full) in spellings {
        assert_eq!(printed(spelling), full, "{spelling}");
    }
}

#[test]
fn on_the_host_a_scope_that_is_left_out_is_that_of_the_system() {
    let spellings = [
        ("ld.volatile r1, x", "ld.relaxed.sys r1, x"),
        ("membar.sys", "fence.sc.sys"),
        ("fence.sys", "fence.acq_rel.sys"),
        ("atom.add r1, [x], 1", "atom.relaxed.sys.add r1, x, 1"),
        ("atom.acquire.cas r1, x, 0, 1", "atom.acquire.sys.cas r1, x, 0, 1"),
        ("red.add x, 1", "red.relaxed.sys.add x, 1"),
        ("ld.weak r1, x", "ld.weak r1, x"),
    ];
    for (spelling, full) in spellings {
        let program = read("P0@cta 0,gpu 0 | P1@host", &format!("| {spelling} ;")).program;
        assert_eq!(program.instruction(&program.threads[1], &program.threads[1].code[0]).to_string(), full);
    }
}

#[test]
fn a_volatile_store_and_load_order_nothing_else() {
    let across = "P0@cta 0,gpu 0 | P1@cta 0,gpu 1";
    assert!(loses_its_message(across, "st.volatile", "ld.volatile"));
    assert!(loses_its_message(across, "st.release.sys", "ld.volatile"));
    let with = |fence: &str| {
        loses(
            across,
            &format!("st.weak x,1 | ld.volatile r0,y ;\n {fence} | {fence} ;\n st.volatile y,1 | ld.weak r1,x ;"),
        )
    };
    assert!(!with("membar.sys") && with("membar.gl"));
}

#[test]
fn a_cluster_that_no_placement_names_is_a_cta() {
    assert!(loses_its_message("P0@cta 0,gpu 0 | P1@cta 1,gpu 0", "st.release.cluster", "ld.acquire.cluster"));
    assert!(!loses_its_message("P0@cta 0,gpu 0 | P1@cta 0,gpu 0", "st.release.cluster", "ld.acquire.cluster"));
    assert_eq!(printed("atom.acq_rel.cluster.add r1, x, 1"), "atom.acq_rel.cta.add r1, x, 1");
}

#[test]
fn ctas_of_one_cluster_synchronise_in_its_scope() {
    let loses = |placements: &str| loses_its_message(placements, "st.release.cluster", "ld.acquire.cluster");
    assert!(!loses("P0@cta 0,cluster 0,gpu 0 | P1@cta 1,cluster 0,gpu 0"));
    assert!(loses("P0@cta 0,cluster 0,gpu 0 | P1@cta 1,cluster 1,gpu 0"));
    assert!(loses("P0@cta 0,cluster 0,gpu 0 | P1@cta 1,gpu 0"));
    assert!(loses("P0@cta 0,cluster 0,gpu 0 | P1@cta 1,cluster 0,gpu 1"), "a cluster lies within its GPU");
}

#[test]
fn a_cluster_of_some_ctas_of_a_gpu_is_not_supported() {
    let three = "P0@cta 0,cluster 0,gpu 0 | P1@cta 1,cluster 0,gpu 0 | P2@cta 2,gpu 0";
    let error = parse("file", &text(three, "ld.relaxed.cluster r0, x | | ;")).unwrap_err();
    assert_eq!(error.unsupported(), Some("cluster"), "{error}");
    let whole = "P0@cta 0,cluster 0,gpu 0 | P1@cta 1,cluster 0,gpu 0 | P2@cta 2,gpu 1";
    assert!(parse("file", &text(whole, "ld.relaxed.cluster r0, x | | ;")).is_ok());
    let alone = "P0@cta 0,cluster 0,gpu 0 | P1@cta 1,cluster 0,gpu 0 | P2@cta 2,gpu 0";
    assert!(parse("file", &text(alone, "| | ld.relaxed.cluster r0, x ;")).is_ok());
}

#[test]
fn threads_of_a_cta_name_one_cluster() {
    let error = parse("file", &text("P0@cta 0,cluster 0,gpu 0 | P1@cta 0,cluster 1,gpu 0", "| ;")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "file:3:38: expected the cluster that the other threads of this CTA name, found `cluster`"
    );
}

#[test]
fn known_instructions_of_ptx_are_unsupported_with_a_reason() {
    let unsupported = [
        ("fence.proxy.alias", "fence.proxy", "generic proxy"),
        ("membar.proxy.alias", "membar.proxy", "generic proxy"),
        ("fence.mbarrier_init.release.cluster", ".mbarrier_init", "asynchronous"),
        ("mbarrier.arrive r0, x", "mbarrier", "asynchronous"),
        ("cp.async.ca.shared.global x, y, 4", "cp", "asynchronous"),
        ("ld.shared r1, x", ".shared", "locations are global"),
        ("ld.relaxed.gpu.f32 r1, x", ".f32", "an integer"),
        ("ld.v2.u32 r1, x", ".v2", "one value"),
        ("add.s32 r1, r0, 1", ".s32", "64 bits"),
        ("add.f64 r1, r0, 1", ".f64", "an integer"),
        ("ld.cv r1, x", ".cv", "caches"),
        ("ld.mmio.relaxed.sys r1, x", ".mmio", "generic proxy"),
        ("st.async.weak x, 1", ".async", "asynchronous"),
        ("red.async.relaxed.cluster.add x, 1", ".async", "asynchronous"),
        ("atom.relaxed.gpu.add.f32 r1, x, 1", ".f32", "an integer"),
        ("shfl.sync r0, r1, 1", "shfl", "alone in its warp"),
        ("mov r0, 1", "mov", "ld, add"),
        ("bra LC00", "bra", "beq"),
        ("barrier.cluster.arrive", "barrier.cluster.arrive", "one of a CTA"),
        ("bar.warp.sync 1", "bar.warp.sync", "one of a CTA"),
        ("bar.red.popc.u32 r1, 0, r0", "bar.red.popc.u32", "one of a CTA"),
        ("bar.sync 0, r1", "bar.sync with a register", "constants"),
        ("bar.sync 0, 64 ; | bar.sync 0", "barrier 0 with two counts", "an equal count"),
        ("ld.weak r0, [x+4]", "offset", "one size"),
    ];
    for (instruction, name, reason) in unsupported {
        let error = refusal(instruction);
        assert_eq!(error.unsupported(), Some(name), "{instruction}: {error}");
        assert!(error.to_string().starts_with("file:4:") && error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn what_no_ptx_has_is_misspelt_and_told_what_is_allowed() {
    let misspelt = [
        ("atom.volatile.add r1, x, 1", ".relaxed, .acquire, .release, .acq_rel, a scope or an operation"),
        (
            "red.volatile.add x, 1",
            ".relaxed, .release, a scope or an operation (add, and, or, xor, min, max, inc, dec)",
        ),
        ("bar.sync 999", "a barrier of 0 to 15"),
        ("bar.sync 0, 48", "a multiple of 32"),
        ("bar.sync 0, 4096", "a multiple of 32 up to 1024"),
        ("bar.arrive 0, 0", "names the barrier's count"),
        ("bar.arrive 0", "names the barrier's count"),
        ("atom.inc.s32 r1, x, 1", ".u32"),
        ("bar.cta.sync 16", "a barrier of 0 to 15"),
        ("barrier.sync -1", "a barrier of 0 to 15"),
        ("fence.sc", ".cta, .cluster, .gpu, .sys"),
        ("ld.relaxed.u32 r1, x", ".cta, .cluster, .gpu, .sys"),
        ("ld.volatile.sys r1, x", "take no scope"),
        ("membar.gpu", ".cta, .gl, .sys"),
        ("fence.weak.gpu", ".acq_rel, .sc, .acquire, .release"),
        ("bar.snyc 0", "a part of `bar.cta.sync`"),
        ("lod.weak r1, x", "an instruction (ld,"),
        ("st.strong x, 1", ".weak, .relaxed, .release, .volatile"),
    ];
    for (instruction, expected) in misspelt {
        let error = refusal(instruction);
        assert_eq!(error.unsupported(), None, "{instruction}: {error}");
        assert!(error.to_string().contains(expected), "{instruction}: {error}");
    }
}

#[test]
fn any_text_may_stand_before_the_initial_values() {
    let body = "{x=0;}\n(* placed *) P0@cta 0,gpu 0 ;\n st.weak x,1 ;\nexists x == 1";
    let headers = [
        "PTX test",
        "PTX test \"one text\"",
        "PTX test\n\"a text with \"nested\" quotes\"",
        "PTX test\n\"an \"odd one out\"\n",
        "PTX test \"braces {in \"nested {or not}\" quotes}\"",
        "PTX test\n\"escaped \\\" quote\"\nCom=Rf Fr\n(* { *)",
        "PTX test\n\"several\nlines \"of\ntext\"\"",
    ];
    for header in headers {
        let litmus = parse("file", &format!("{header}\n{body}")).unwrap_or_else(|error| panic!("{header}: {error}"));
        assert_eq!((litmus.program.name.as_str(), litmus.program.locations.len()), ("test", 1), "{header}");
    }
    let error = parse("file", "PTX test \"a \"nested\" text\"\n{x=0;}\nP0@cta 0,gpu 0;\nst.weak x,y;").unwrap_err();
    assert!(error.to_string().starts_with("file:4:11:"), "{error}");
}

#[test]
fn locations_to_print_are_passed_over() {
    let with = |list: &str| parse("file", &text(PLACEMENTS, &format!("st.weak x,1 | ;\nlocations [{list}]")));
    assert_eq!(with("x; P1:r0; y;").unwrap(), with("").unwrap());
    assert!(with("z;").unwrap_err().to_string().contains("expected a location of the test, found `z`"));
}

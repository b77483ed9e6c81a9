//! Accesses with types, and instructions that NVIDIA's assembler rejects.

use tombolo_check::axiomatic::{Limits, ModelError, outcomes};
use tombolo_check::litmus::{Litmus, LitmusError, Sign, ValueType, parse};

/// A test with x and y; P1 runs `rows`, an instruction per row.
fn text(initial: &str, rows: &str) -> String {
    let rows: String = rows.split(" ; ").map(|row| format!("| {row} ;\n")).collect();
    format!("PTX test\n{{{initial}}}\nP0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n{rows}exists (x=0 \\/ y=0)")
}

fn read(rows: &str) -> Litmus {
    parse("file", &text("x=0; y=0;", rows)).unwrap_or_else(|error| panic!("{error}"))
}

fn error(rows: &str) -> LitmusError {
    parse("file", &text("x=0; y=0;", rows)).expect_err(rows)
}

/// Instructions of P1 in printed form.
fn printed(rows: &str) -> String {
    let program = read(rows).program;
    let thread = &program.threads[1];
    thread.code.iter().map(|one| program.instruction(thread, one).to_string()).collect::<Vec<_>>().join(" ; ")
}

#[test]
fn a_type_is_read_and_printed_where_ptx_has_it() {
    for row in [
        "ld.acquire.gpu.u32 r1, x",
        "ld.weak.s64 r1, x",
        "st.release.sys.b8 x, 1",
        "atom.acq_rel.cta.add.u32 r1, x, 1",
        "atom.relaxed.gpu.cas.b16 r1, x, 0, 1",
        "atom.relaxed.gpu.exch.b64 r1, x, 2",
        "red.release.gpu.or.b32 x, 1",
    ] {
        assert_eq!(printed(row), row);
    }
    for (row, full) in [
        ("ld.acquire.gpu.global.u32 r1, [x]", "ld.acquire.gpu.u32 r1, x"),
        ("ld.u32 r1, [x]", "ld.weak.u32 r1, x"),
        ("ld.global.b32 r1, [x]", "ld.weak.b32 r1, x"),
        ("ld.volatile.global.u64 r1, [x]", "ld.relaxed.sys.u64 r1, x"),
        ("st.global.s16 [x], -1", "st.weak.s16 x, -1"),
        ("atom.global.add.u32 r1, [x], 1", "atom.relaxed.gpu.add.u32 r1, x, 1"),
        ("red.relaxed.gpu.global.add.s32 [x], 1", "red.relaxed.gpu.add.u32 x, 1"),
        ("add.s64 r1, r0, 1 ; mul.lo.s64 r1, r1, 2", "add r1, r0, 1 ; mul r1, r1, 2"),
    ] {
        assert_eq!(printed(row), full, "{row}");
    }
}

#[test]
fn types_say_nothing_of_what_the_model_allows() {
    let typed = |suffix: &str, add: &str| {
        let rows = format!(
            "st.weak{suffix} x,1 | ld.acquire.gpu{suffix} r0,y ;\n st.release.gpu{suffix} y,1 | ld.weak{suffix} r1,x ;\n\
             red.gpu.add{add} x,1 | ;"
        );
        let text = format!(
            "PTX t\n{{x=0; y=0;}}\nP0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n{rows}\n~exists (P1:r0 == 1 /\\ P1:r1 == 0)"
        );
        let litmus = parse("file", &text).unwrap_or_else(|error| panic!("{error}"));
        let states = outcomes(&litmus.program, &Limits::default()).expect("it is small").states().to_vec();
        let printed = litmus.to_string();
        assert_eq!(parse("printed", &printed).unwrap_or_else(|error| panic!("{error}")), litmus, "{printed}");
        states
    };
    assert_eq!(typed(".u32", ".u32"), typed("", ""));
    assert_eq!(typed(".b64", ".u64"), typed("", ""));
    assert_eq!(typed(".s32", ""), typed("", ""));
}

#[test]
fn a_location_has_one_size() {
    let unsupported = error("ld.weak.u32 r0, x ; st.weak.u64 x, 1");
    assert_eq!(unsupported.unsupported(), Some(".u64"));
    assert!(unsupported.to_string().contains("a location is one value of one size"), "{unsupported}");
    let program = read("ld.weak.u32 r0, x ; st.weak.s32 x, 1 ; atom.add.u32 r1, y, 1 ; ld.weak.s32 r2, y").program;
    let types = [0, 1].map(|location| program.locations[location].value_type);
    let of_32 = |sign| Some(ValueType { bits: 32, sign });
    assert_eq!(types, [of_32(Sign::Either), of_32(Sign::Signed)]);
}

#[test]
fn a_value_that_its_type_does_not_hold_is_unsupported() {
    for (rows, value) in [
        ("st.weak.u8 x, 256", "256"),
        ("st.weak.u32 x, -1", "-1"),
        ("ld.weak.s32 r0, x ; st.weak x, 2147483648", "2147483648"),
        ("ld.weak.b32 r0, x ; atom.cas.b32 r1, x, -1, 0", "-1"),
    ] {
        let error = error(rows);
        assert_eq!(error.unsupported(), Some(value), "{error}");
    }
    let initial = parse("file", &text("x=300; y=0;", "ld.weak.u8 r0, x")).unwrap_err();
    assert_eq!(initial.unsupported(), Some("300"), "{initial}");
}

#[test]
fn the_model_has_no_answer_where_a_sum_leaves_its_type() {
    let run =
        |add: &str| outcomes(&read(&format!("st.relaxed.gpu.s32 x, 2147483647 ; {add}")).program, &Limits::default());
    let error = ModelError::Value { location: "x".into(), value: 2_147_483_648 };
    assert_eq!(run("red.relaxed.gpu.add.s32 x, 1"), Err(error));
    assert!(run("red.relaxed.gpu.add.s32 x, -1").is_ok());
}

#[test]
fn what_the_assembler_refuses_is_no_ptx_and_told_the_rule() {
    for (rows, name, reason) in [
        ("red.acquire.gpu.add.u32 x, 1", "red.acquire", "returns nothing that could acquire"),
        ("red.acq_rel.sys.add x, 1", "red.acq_rel", "returns nothing that could acquire"),
        ("red.relaxed.gpu.exch x, 1", "red.exch", "returns nothing: its operations are"),
        ("red.relaxed.gpu.cas.b32 x, 1, 2", "red.cas", "returns nothing: its operations are"),
        ("red.relaxed.gpu.sub x, 1", ".sub", "the operations are add, and, or, xor"),
        (
            "atom.relaxed.gpu.sub r0, x, 1",
            ".sub",
            "the operations are add, and, or, xor, min, max, inc, dec, exch, cas",
        ),
        ("atom.acq_rel.gpu.mul r0, x, 1", ".mul", "the operations are"),
        ("atom.relaxed.gpu.div.u32 r0, x, 1", ".div", "the operations are"),
        ("atom.relaxed.gpu.add.s64 r0, x, 1", ".s64", "are .u32, .s32, .u64"),
        ("atom.relaxed.gpu.add.b32 r0, x, 1", ".b32", "are .u32, .s32, .u64"),
        ("atom.relaxed.gpu.exch.u32 r0, x, 1", ".u32", "are .b32, .b64"),
        ("atom.relaxed.gpu.cas.s32 r0, x, 0, 1", ".s32", "are .b16, .b32, .b64"),
        ("red.relaxed.gpu.and.u32 x, 1", ".u32", "are .b32, .b64"),
        ("ld.weak.u8 r0, x ; red.add x, 1", "atomic of 8 bits", "are .u32, .s32, .u64"),
        ("ld.weak.gpu.u32 r0, x", ".gpu", "take no scope"),
        ("st.volatile.sys.u32 x, 1", ".sys", "take no scope"),
        ("mul.s64 r0, r1, 2", "mul.s64", "a product is .lo, .hi or .wide"),
    ] {
        let error = error(rows);
        let LitmusError::Illegal { name: found, .. } = &error else { panic!("{rows}: {error}") };
        assert_eq!(found, name, "{error}");
        assert!(error.to_string().contains(reason) && error.to_string().contains("is not PTX"), "{rows}: {error}");
        assert_eq!(error.unsupported(), None);
    }
}

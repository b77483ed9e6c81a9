//! The litmus reader on correct, incorrect and unsupported text.

use proptest::prelude::*;
use std::path::{Path, PathBuf};
use tombolo_check::litmus::{
    Assignments, Formula, Instruction, LitmusError, Operand, Quantifier, ThreadPlacement, parse,
};
use tombolo_types::{GpuId, Order, Scope, Semantics};

/// A litmus test with two threads in one GPU: instruction rows `rows`, with a column per thread, then `condition`.
fn text(rows: &str, condition: &str) -> String {
    format!(
        "PTX a test\n\"what it\nshows\"\n{{ x=0; P0:r0=0; }}\nP0@cta 0,gpu 0 | P1@cta 1, gpu 0 ;\n{rows}\n{condition}"
    )
}

fn error(text: &str) -> String {
    match parse("file", text) {
        Ok(litmus) => panic!("no error in\n{litmus}"),
        Err(error) => error.to_string(),
    }
}

fn row_error(row: &str) -> String {
    error(&text(row, "exists x=0"))
}

#[test]
fn instructions_read_as_written() {
    let litmus =
        parse("file", &text("ld.acquire.gpu r1, x | st.weak y, -3 ; | red.relaxed.sys.xor y, r7 ;", "exists x=0"));
    let program = litmus.unwrap().program;
    assert_eq!(program.name, "a test");
    let [first, second] = &program.threads[..] else { panic!("two threads") };
    let Instruction::Load { order, into, location } = first.code[0] else { panic!("{:?}", first.code) };
    assert_eq!(order, Order::new(Semantics::Acquire, Scope::Gpu));
    assert_eq!(first.registers[usize::from(into.0)].name, "r1");
    assert_eq!(program.locations[usize::from(location.0)].name, "x");
    let Instruction::Store { order: Order::WEAK, value: Operand::Value(-3), .. } = second.code[0] else {
        panic!("{:?}", second.code)
    };
    assert!(matches!(second.code[1], Instruction::Atomic { into: None, .. }));
}

#[test]
fn every_instruction_is_printed_as_it_was_read() {
    let instructions = [
        "ld.weak r0, x",
        "ld.relaxed.cta r0, x",
        "st.release.sys x, r0",
        "atom.acq_rel.gpu.cas r0, x, r1, 2",
        "atom.acquire.gpu.exch r0, x, r1",
        "atom.release.cta.or r0, x, -1",
        "red.release.gpu.and x, 3",
        "fence.sc.sys",
        "fence.acq_rel.cta",
        "ld r0, 4",
        "ld r0, r1",
        "add r0, r1, 2",
        "sub r0, 1, r2",
        "mul r0, r0, r0",
        "div r0, r1, r2",
        "bar.cta.sync 4",
        "bar.cta.sync 5, 64",
        "bar.cta.arrive 15, 1024",
        "atom.release.cta.max r0, x, -1",
        "red.relaxed.gpu.dec y, 3",
        "bge r0, -1, LC00",
        "goto LC00",
    ];
    let litmus = parse("file", &text(&format!("LC00: ; {} ;", instructions.join(" ; ")), "exists x=0")).unwrap();
    let thread = &litmus.program.threads[0];
    let printed: Vec<String> =
        thread.code.iter().map(|instruction| litmus.program.instruction(thread, instruction).to_string()).collect();
    assert_eq!(printed, instructions);
    assert!(litmus.program.has_loop());
}

#[test]
fn labels_point_at_what_follows_them() {
    let rows = "beq r0, 1, LC01 | ; ld r1, 1 | goto LC00 ; LC01: LC02: ld r2, 1 | LC00: ; goto LC03 ; LC03: ;";
    let litmus = parse("file", &text(rows, "exists x=0")).unwrap();
    let targets = |thread: usize| -> Vec<usize> {
        litmus.program.threads[thread].code.iter().filter_map(Instruction::target).collect()
    };
    assert_eq!(targets(0), [2, 4]);
    assert_eq!(targets(1), [1]);
    assert!(!litmus.program.has_loop());
}

#[test]
fn conditions_bind_not_before_and_before_or() {
    let holds = |condition: &str| {
        let rows = "ld.weak r0, x | ld.weak r5, x ; ld.weak r1, x | ;";
        let litmus = parse("file", &text(rows, condition)).unwrap_or_else(|error| panic!("{error}"));
        let state = litmus.program.final_state(&[[1, 2].as_slice(), &[3]], &[4]);
        (litmus.condition.quantifier, litmus.condition.formula.holds(&litmus.program, &state))
    };
    let declare = "(P0:r0=1 /\\ P0:r1=2 /\\ P1:r5=3 /\\ [x]=4)";
    let exists = |rest: &str| holds(&format!("exists {declare} /\\ ({rest})")).1;
    assert!(exists("0:r0 == 1"));
    assert!(exists("1 = 1 \\/ 1 = 2 /\\ 1 = 3"));
    assert!(!exists("(1 = 1 \\/ 1 = 2) /\\ 1 = 3"));
    assert!(!exists("~1 = 1 \\/ 1 = 2"));
    assert!(exists("not (x < 4) /\\ x <= 4 /\\ x >= 4 /\\ ~x > 4 /\\ x != P1 : r5"));
    assert_eq!(holds(&format!("~exists {declare} ;")), (Quantifier::NotExists, true));
    assert_eq!(holds(&format!("not exists {declare}")).0, Quantifier::NotExists);
    assert_eq!(holds(&format!("forall {declare}")).0, Quantifier::Forall);
}

#[test]
fn the_event_of_forall_is_the_negation() {
    let event = |condition: &str| {
        let litmus = parse("file", &text("", condition)).unwrap();
        let state = litmus.program.final_state(&[[0].as_slice(), &[]], &[0]);
        litmus.condition.event(&litmus.program, &state)
    };
    assert!(event("exists x=0") && event("~exists x=0") && !event("forall x=0"));
}

#[test]
fn a_state_prints_with_names() {
    let litmus = parse("file", &text("", "exists x=0")).unwrap();
    let state = litmus.program.final_state(&[[7].as_slice(), &[]], &[-1]);
    assert_eq!(Assignments { program: &litmus.program, state: &state }.to_string(), "P0:r0=7; [x]=-1");
}

#[test]
fn errors_name_place_and_what_is_allowed() {
    assert_eq!(error(""), "file:1:1: expected `PTX` and the name of the test, found the end of the file");
    assert_eq!(error("X86 t"), "file:1:1: expected `PTX` and the name of the test, found `X86`");
    assert_eq!(error("PTX t\n{ x=0;"), "file:2:7: expected a location, found the end of the file");
    assert_eq!(row_error("ld.weak.cta r0, x ;"), "file:6:8: `.cta` is not PTX: .weak and .volatile take no scope");
    assert_eq!(
        row_error("ld.release.gpu r0, x ;"),
        "file:6:4: expected .weak, .relaxed, .acquire, .volatile, found `release`"
    );
    assert_eq!(row_error("st.relaxed x, 1 ;"), "file:6:12: expected .cta, .cluster, .gpu, .sys, found `x`");
    assert_eq!(row_error("st.weak x, y ;"), "file:6:12: expected a register (r0, r1, …), found `y`");
    assert_eq!(row_error("ld.weak r0, x | | ;"), "file:6:19: expected `;`: there are no more threads, found `;`");
    assert_eq!(row_error("ld.weak r0, x ld.weak r1, x ;"), "file:6:15: expected `|` or `;`, found `ld`");
    assert_eq!(
        row_error("red.relaxed.gpu.cas x, 0, 1 ;"),
        "file:6:17: `red.cas` is not PTX: a reduction returns nothing: its operations are .add, .and, .or, .xor, .min, .max, .inc, .dec"
    );
    assert_eq!(row_error("goto LC07 ;"), "file:6:6: expected a label of the same thread, found `LC07`");
    let uneven = row_error("kernel.boundary | ;\nkernel.boundary | kernel.boundary ;");
    assert!(uneven.contains("expected as many rows of `kernel.boundary` in every thread"), "{uneven}");
    assert_eq!(row_error("kernel.end | ;"), "file:6:8: expected `boundary`, found `end`");
    assert_eq!(
        row_error("ld r0, 99999999999999999999 ;"),
        "file:6:8: expected an integer of at most 63 bits, found `99999999999999999999`"
    );
    assert_eq!(
        row_error("ld.weak r0 $"),
        "file:6:12: expected a name, a number or a symbol of the litmus grammar, found `$`"
    );
    let unknown = "a register that the thread has, found `r4`";
    assert_eq!(error(&text("", "exists P0:r4 = 1")), format!("file:7:11: expected {unknown}"));
    assert_eq!(error(&text("", "exists z=0")), "file:7:8: expected a location of the test, found `z`");
    assert_eq!(error(&text("", "exists P4:r0 = 1")), "file:7:8: expected a thread of this test (P0, P1), found `P4`");
    assert_eq!(
        error(&text("", "exists r0 = 1")),
        "file:7:8: expected a register with its thread (P0:r1), a location or an integer, found `r0`"
    );
    assert_eq!(error(&text("", "exists (x=0")), "file:7:12: expected `)`, found the end of the file");
    assert_eq!(
        error(&text("", "")),
        "file:7:1: expected a row of instructions, `exists`, `~exists` or `forall`, found the end of the file"
    );
    let deep = format!("exists {}x=0", "(".repeat(5000));
    assert!(error(&text("", &deep)).contains("at most 100 nested parentheses"));
}

/// A litmus test with threads on the host, on a GPU, and on the host; `row` has a column for each.
fn with_host(row: &str) -> String {
    format!("PTX a test\n{{ x=0; }}\nP0@host | P1@cta 0,gpu 0 | P7@host ;\n{row}\nexists x=0")
}

#[test]
fn a_thread_may_be_on_the_host() {
    let litmus =
        parse("file", &with_host("atom.add r0, x, 1 | kernel.boundary | ;\nkernel.boundary | | kernel.boundary ;"));
    let litmus = litmus.unwrap_or_else(|error| panic!("{error}"));
    let placements: Vec<ThreadPlacement> = litmus.program.threads.iter().map(|thread| thread.placement).collect();
    assert_eq!(
        placements,
        [ThreadPlacement::Host, ThreadPlacement::Cta { gpu: GpuId(0), cta: 0 }, ThreadPlacement::Host]
    );
    assert!(litmus.program.has_host());
    let printed = litmus.to_string();
    assert!(printed.contains("P7@host"), "{printed}");
    assert_eq!(parse("file", &printed).unwrap_or_else(|error| panic!("{error}\n{printed}")), litmus);
    assert!(!parse("file", &text("", "exists x=0")).unwrap().program.has_host());
}

#[test]
fn a_host_thread_has_no_scope_but_the_system_and_no_barrier() {
    let refused = |row: &str| error(&with_host(&format!("{row} | | ;")));
    let scope = "expected sys: a host thread has no CTA and no GPU, found";
    assert_eq!(refused("ld.relaxed.cta r0, x"), format!("file:4:12: {scope} `cta`"));
    assert_eq!(refused("st.release.gpu x, 1"), format!("file:4:12: {scope} `gpu`"));
    assert_eq!(refused("atom.acquire.cluster.add r0, x, 1"), format!("file:4:14: {scope} `cluster`"));
    assert_eq!(refused("red.gpu.add x, 1"), format!("file:4:5: {scope} `gpu`"));
    assert_eq!(refused("fence.cta"), format!("file:4:7: {scope} `cta`"));
    assert_eq!(refused("fence.sc.gpu"), format!("file:4:10: {scope} `gpu`"));
    assert_eq!(refused("membar.gl"), format!("file:4:8: {scope} `gl`"));
    assert_eq!(
        refused("bar.cta.sync 0"),
        "file:4:1: expected no barrier: a host thread has no CTA to meet, found `bar`"
    );
    let of_gpu = with_host("| ld.relaxed.gpu r0, x | ;");
    assert!(parse("file", &of_gpu).is_ok(), "a thread of a GPU beside it has them");
    assert_eq!(error("PTX t\n{ x=0; }\nP0@cpu ;"), "file:3:4: expected `cta` or `host`, found `cpu`");
}

#[test]
fn the_wider_corpus_is_unsupported_by_name() {
    let name = |text: &str| match parse("file", text) {
        Err(LitmusError::Unsupported { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    let of_row = |row: &str| name(&text(row, "exists x=0"));
    assert_eq!(of_row("suld.weak r0, x ;"), "suld");
    assert_eq!(of_row("fence.proxy.alias ;"), "fence.proxy");
    assert_eq!(of_row("bar.cta.red 1 ;"), "bar.cta.red");
    assert_eq!(of_row("bar.cta.sync r1 ;"), "bar.cta.sync with a register");
    assert_eq!(of_row("ld.weak r0, r1 ;"), "address in a register");
    assert_eq!(name("PTX t\n{ y @ generic aliases x; }"), "alias");
    assert_eq!(name("PTX t\n{ y=&x; }"), "address as an initial value");
    assert_eq!(name("GPU_PTX t\n{ 0:.reg .s32 r0; }"), "GPU_PTX");
    assert_eq!(name("PTX t\n{ x[2]; }"), "array");
    assert_eq!(name(&text("", "filter x=0")), "filter");
}

#[test]
fn comments_signs_and_spacing_do_not_matter() {
    let dense = parse("file", "PTX t{x=-1;}P0@cta 0,gpu 0;ld.weak r0,x;exists P0:r0=-1").unwrap();
    let loose = "PTX t (* not a comment: part of the name *)\n{\r\n x = - 1 ; (* why *) ;; } P0 @ cta 0 , gpu 0 ;\n ld . weak r0 , x ;\n exists ((P0 : r0 = 0x1 \\/ P0:r0 = - 1))";
    let loose = parse("file", loose).unwrap();
    assert_eq!(dense.program.threads, loose.program.threads);
    assert_eq!(dense.program.locations, loose.program.locations);
    assert!(matches!(loose.condition.formula, Formula::Or(_)));
}

/// All files in the corpus.
fn corpus() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/litmus");
    let list = |folder: &str| std::fs::read_dir(root.join(folder)).expect("the corpus is complete");
    let mut files: Vec<PathBuf> = ["Manual", "Memalloy", "Nvidia", "variants"]
        .iter()
        .flat_map(|folder| list(folder).map(|entry| entry.expect("the corpus is readable").path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "litmus"))
        .collect();
    files.sort();
    files
}

#[test]
fn every_file_of_the_corpus_is_read() {
    let files = corpus();
    assert_eq!(files.len(), 52 + 183);
    for file in files {
        tombolo_check::litmus::read(&file).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// A single change to a text.
#[derive(Clone, Debug)]
enum Change {
    Delete(usize, usize),
    Insert(usize, String),
    Repeat(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let piece = prop_oneof![
        "[ -~\n]{1,4}",
        prop::sample::select(vec![
            "|",
            ";",
            ":",
            "~",
            "(",
            "r0",
            "LC00:",
            "goto LC00",
            "(*",
            "\"",
            "é",
            "-",
            "0x",
            "99999999999",
            "P0:",
            "@host"
        ])
        .prop_map(str::to_owned),
    ];
    prop_oneof![
        (any::<usize>(), 1..12_usize).prop_map(|(at, length)| Change::Delete(at, length)),
        (any::<usize>(), piece).prop_map(|(at, piece)| Change::Insert(at, piece)),
        (any::<usize>(), 1..40_usize).prop_map(|(at, length)| Change::Repeat(at, length)),
    ]
}

fn apply(text: &str, change: &Change) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    let size = characters.len();
    let range = |at: usize, length: usize| {
        let start = at % size.max(1);
        start.min(size)..(start + length).min(size)
    };
    match change {
        Change::Delete(at, length) => drop(characters.drain(range(*at, *length))),
        Change::Insert(at, piece) => {
            let start = range(*at, 0).start;
            characters.splice(start..start, piece.chars());
        }
        Change::Repeat(at, length) => {
            let range = range(*at, *length);
            let piece = characters[range.clone()].to_vec();
            characters.splice(range.end..range.end, piece);
        }
    }
    characters.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// A damaged file gives an error with a position, or a test equal to the test read from its printed form. The
    /// reader never panics.
    #[test]
    fn damaged_files_never_panic(file in prop::sample::select(corpus()), changes in prop::collection::vec(change(), 1..6)) {
        let mut text = std::fs::read_to_string(&file).expect("the corpus is readable");
        for change in &changes {
            text = apply(&text, change);
        }
        match parse("damaged", &text) {
            Ok(litmus) => {
                let printed = litmus.to_string();
                prop_assert_eq!(parse("printed", &printed).expect("what is printed can be read"), litmus);
            }
            Err(error) => prop_assert!(error.to_string().starts_with("damaged:"), "{}", error),
        }
    }
}

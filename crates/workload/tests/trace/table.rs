//! Tables: what each row becomes, what is refused, and that an exported program is read back as it was.

use super::kit::{gzip, open};
use std::ops::Range;
use std::path::PathBuf;
use tempfile::TempDir;
use tombolo_types::stream::{AtomicResult, ChainLinks, Command, ComputeClass, CtaStream, KernelClass, Op, Program};
use tombolo_types::{GpuId, LaunchDevices, Mask, Order, Scope, Semantics};
use tombolo_workload::bench::{self, Mode, Request};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;
use tombolo_workload::trace;

/// A file with this content.
fn file(content: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    std::fs::write(&path, content).unwrap();
    (folder, path)
}

fn read(text: &str) -> Box<dyn Program> {
    let (_folder, path) = file(text.as_bytes());
    open(&path).unwrap_or_else(|error| panic!("{error}"))
}

/// The error for a table, from its line number on.
fn refusal(text: &str) -> String {
    let (_folder, path) = file(text.as_bytes());
    let message = open(&path).err().expect("the table is bad").to_string();
    message.split_once("table.csv:").expect("the message names the file").1.to_owned()
}

fn stream(program: &dyn Program, kernel: u32, cta: u32) -> CtaStream {
    let mut stream = CtaStream::default();
    program.cta(kernel, cta, &mut stream).unwrap();
    stream
}

/// A list of one range.
fn only(range: Range<u64>) -> Vec<Range<u64>> {
    std::iter::once(range).collect()
}

/// Lines, relative to the array's first, and masks of the accesses of a stream.
fn lines(program: &dyn Program, stream: &CtaStream) -> Vec<(u64, u32)> {
    let first = program.arrays()[0].base / 128;
    stream.accesses.iter().map(|access| (access.line.0 - first, access.mask.0)).collect()
}

#[test]
fn each_row_is_an_operation_of_its_warp() {
    let text = "operation,kernel,warp,array,address,bytes,count,order,scope,chain\n\
                # two warps, the second without accesses\n\
                load,k,0,x,0x80,256,,,,\n\
                use,k,0,,,,1,,,\n\
                fp64,k,0,,,,3,,,\n\
                tensor,k,0,,,,2,,,0\n\
                red,k,0,x,4,4,,relaxed,gpu,\n\
                and,k,0,x,12,4,,,,\n\
                and,k,0,x,1024,8,,,,\n\
                load,k,1,,,0,,,,\n\
                fence,k,1,,,,,sc,sys,\n\
                barrier,k,1,,,,,,,\n\
                shared,k,1,,,,4,,,\n\
                store,k,0,x,0,128,,release,cta,\n";
    let program = read(text);
    let info = &program.kernels()[0];
    assert_eq!((info.name.as_str(), info.ctas, info.threads_per_cta), ("k", 1, 64));
    assert_eq!((info.class, info.parts.len()), (KernelClass::Independent, 0));
    assert_eq!(program.commands(), [Command::launch(0, 0)]);
    assert_eq!((program.arrays()[0].name.as_str(), program.arrays()[0].bytes), ("x", 1032));
    let stream = stream(&*program, 0, 0);
    assert_eq!(lines(&*program, &stream), [(1, u32::MAX), (2, u32::MAX), (0, 0b1010), (8, 0b11), (0, u32::MAX)]);
    assert_eq!(stream.warps, [0..6, 6..10]);
    let chain = |class, count, chain, linked| {
        let links = ChainLinks { joins: linked, awaited: linked };
        Op::Compute { class, count, chain, links }
    };
    assert_eq!(
        stream.ops[1..4],
        [Op::Use { distance: 1 }, chain(ComputeClass::Fp64, 3, 3, true), chain(ComputeClass::Tensor, 2, 0, false)]
    );
    let Op::Atomic { order, result, accesses } = stream.ops[4] else { panic!("{:?}", stream.ops[4]) };
    assert_eq!((order.order(), result), (Order::relaxed(Scope::Gpu), AtomicResult::Discarded));
    assert_eq!(accesses.range(), 2..4);
    assert!(matches!(stream.ops[5], Op::Store { order, .. } if order.order() == Order::release(Scope::Cta)));
    assert!(matches!(stream.ops[6], Op::Load { accesses, .. } if accesses.range().is_empty()));
    let fence = Order::new(Semantics::SequentiallyConsistent, Scope::Sys);
    assert_eq!(stream.ops[7..], [Op::Fence { order: fence.into() }, Op::Barrier, Op::Shared { passes: 4 }]);
}

#[test]
fn gpus_streams_flags_and_the_host_are_read() {
    let text = "kernel,launch,gpu,stream,cta,operation,array,address,bytes,flag,order,scope,threads,registers,shared_bytes\n\
                ,,,,,array,y,,4096,,,,,,\n\
                ,,,,,copy-to-device,x,0,512,,,,,,\n\
                ,,,,,host-write,y,0,64,,,,,,\n\
                k,1,2,7,5,wait,x,0,4,ready,acquire,sys,96,40,1024\n\
                k,1,0,7,9,store,x,0,4,ready,release,sys,,,\n\
                k,1,0,7,3,store,y,8,4,,,,,,\n\
                ,,,,,synchronize,,,,,,,,,\n\
                ,,,,,host-read,y,0,8,,,,,,\n\
                k,2,1,0,0,load,x,128,4,,,,,,\n\
                ,,,,,copy-to-host,y,0,64,,,,,,\n";
    let program = read(text);
    let [first, second] = program.kernels() else { panic!("two launches") };
    assert_eq!((first.ctas, first.threads_per_cta, first.registers, first.shared_bytes), (3, 96, 40, 1024));
    assert_eq!((first.class, first.parts.as_slice()), (KernelClass::Cooperative, [0, 2].as_slice()));
    assert_eq!((second.ctas, second.parts.len()), (1, 0));
    let on = |gpus: &[u8]| LaunchDevices::Gpus(gpus.iter().copied().map(GpuId).collect());
    let (y, x) = (program.arrays()[0].base, program.arrays()[1].base);
    assert_eq!(
        program.commands(),
        [
            Command::Copy { address: x, bytes: 512, to_device: true },
            Command::Host { phase: 0 },
            Command::Launch { kernel: 0, stream: 7, on: on(&[0, 2]) },
            Command::Barrier,
            Command::Host { phase: 1 },
            Command::Launch { kernel: 1, stream: 0, on: on(&[1]) },
            Command::Copy { address: y, bytes: 64, to_device: false },
        ]
    );
    assert_eq!(
        (&program.host_phases()[0].writes, &program.host_phases()[1].reads),
        (&only(y..y + 64), &only(y..y + 8))
    );
    assert!(program.setup().is_empty() && program.results().is_empty());
    // CTAs of a GPU in the order of their numbers, GPUs one after the other.
    assert_eq!(lines(&*program, &stream(&*program, 0, 0)), [(0, 0b100)]);
    assert!(matches!(stream(&*program, 0, 1).ops[..], [Op::Store { .. }, Op::Signal { token: 0 }]));
    let waiting = stream(&*program, 0, 2);
    assert!(matches!(waiting.ops[..], [Op::WaitUntil { order, .. }] if order.order() == Order::acquire(Scope::Sys)));
    assert_eq!(waiting.tokens, stream(&*program, 0, 1).tokens);
}

#[test]
fn copies_say_what_the_host_accesses_if_no_row_does() {
    let copy = |operation: &str| format!(",{operation},x,0,64\n");
    let kernel = "k,load,x,0,4\n";
    let rows = [copy("copy-to-device").as_str(), kernel, &copy("copy-to-host")].concat();
    let told = |more: &str| {
        let program = read(&format!("kernel,operation,array,address,bytes\n{rows}{more}"));
        let base = program.arrays()[0].base;
        let offsets = |ranges: &[Range<u64>]| -> Vec<_> {
            ranges.iter().map(|range| range.start - base..range.end - base).collect()
        };
        (offsets(&program.setup().writes), offsets(&program.results().reads))
    };
    assert_eq!(told(""), (only(0..64), only(0..64)));
    assert_eq!(told(",host-read,x,0,8\n"), (Vec::new(), only(0..8)));
}

#[test]
fn without_arrays_addresses_are_absolute_and_a_packed_table_is_read() {
    // A data frame writes whole numbers as floats if a row has none.
    let text = "operation,kernel,address,bytes,cta\nload,k,0x7f0000000040,64.0,0.0\nfp32,k,,,0.0\n";
    let (_folder, path) = file(&gzip(text.as_bytes()));
    let program = open(&path).unwrap();
    assert!(program.arrays().is_empty());
    let access = stream(&*program, 0, 0).accesses[0];
    assert_eq!(({ access.line }.0, { access.mask }), (0x7f_0000_0000_u64 << 1, Mask(u32::MAX << 16)));
    assert_eq!(trace::info(&path).unwrap().format, "table");
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let table = |rows: &str| format!("kernel,gpu,operation,array,address,bytes,flag,order,scope,count,warp\n{rows}\n");
    let cases = [
        ("operation,kernel,adress\n".to_owned(), "1: expected a column: gpu, stream, kernel,"),
        ("operation,kernel,operation\n".to_owned(), "1: expected each column once, found `operation`"),
        ("operation,kernel\nload,k,3\n".to_owned(), "2: expected 2 fields, found 3"),
        ("operation,kernel\n".to_owned(), "1: expected a row with an operation of a kernel"),
        (table("k,,lode,,,,,,,,"), "2: expected in column operation, an operation of a warp: load, store, atom"),
        (table(",,load,x,0,4,,,,,"), "2: expected in column operation, one of copy-to-device"),
        (table("k,,load,x,0,,,,,,"), "2: expected in column bytes, a number from 1 to 65280"),
        (table("k,,load,x,1e3,4,,,,,"), "2: expected in column address, a whole number of at most 64 bits"),
        (table("k,300,load,x,0,4,,,,,"), "2: expected in column gpu, a whole number of at most 8 bits"),
        (table("k,,load,x,0,4,,acquire,,,"), "2: expected in column scope, one of cta, gpu, sys"),
        (table("k,,load,x,0,4,,release,gpu,,"), "2: expected in column order, one of weak, relaxed, acquire"),
        (table("k,,store,x,0,4,,,sys,,"), "2: expected in column scope, nothing, as a weak access has no scope"),
        (table("k,,load,x,0,4,f,,,,"), "2: expected in column flag, nothing"),
        (table("k,,wait,x,0,4,,acquire,sys,,"), "2: expected in column flag, the event to wait for"),
        (table("k,,use,,,,,,,65,"), "2: expected in column count, a number from 1 to 64"),
        (table("k,,and,x,0,4,,,,,"), "2: expected a row behind a load, a store or an atomic of its warp"),
        (table("k,,load,x,0,4,,,,,\nk,,and,x,8,4,,,,,1"), "3: expected a row behind a load"),
        (table("k,,load,x,0,4,,,,,\nk,,load,,8,4,,,,,"), "3: expected in column array, an array in all accesses"),
        (table("k,0,load,x,0,4,,,,,\nk,,load,x,8,4,,,,,"), "3: expected in column gpu, a GPU in all rows of a launch"),
        (table("k,,load,x,0,4,,,,,\nk,,wait,x,0,4,f,,sys,,"), "3: expected a store or an atomic of the launch"),
        (table("k,,store,x,0,4,f,,,,\nk,,store,x,8,4,f,,,,"), "3: expected in column flag, an event that no other"),
        (table("k,,store,x,0,4,f,,,,\nk,,wait,x,126,4,f,,sys,,"), "3: expected a flag inside a line"),
        (
            table(",,array,x,,64,,,,,\nk,,load,x,62,4,,,,,"),
            "3: expected in column address, an offset inside array x, of 64",
        ),
        (table("k,,load,x,0,128,,,,,\n,,array,x,,64,,,,,"), "3: expected in column bytes, at least 128"),
    ];
    for (text, expected) in cases {
        let message = refusal(&text);
        assert!(message.starts_with(expected), "{text}: {message}, not {expected}");
    }
}

/// Decodes the streams of all launches, with tokens renumbered by first appearance.
fn launched(program: &dyn Program) -> Vec<Vec<CtaStream>> {
    let kernels = program.commands().iter().filter_map(Command::kernel);
    let of_launch = |kernel: u32| {
        let mut seen = Vec::new();
        let number = |token: u32, seen: &mut Vec<u32>| {
            seen.iter().position(|known| *known == token).unwrap_or_else(|| {
                seen.push(token);
                seen.len() - 1
            })
        };
        let renumbered = |cta| {
            let mut stream = stream(program, kernel, cta);
            stream.tokens.iter_mut().for_each(|token| token.0 = number(token.0, &mut seen) as u32);
            stream
        };
        (0..program.kernels()[kernel as usize].ctas).map(renumbered).collect()
    };
    kernels.map(of_launch).collect()
}

/// All ranges that the host reads, in order.
fn host_reads(program: &dyn Program) -> Vec<Range<u64>> {
    program.host_phases().iter().chain([program.results()]).flat_map(|phase| phase.reads.clone()).collect()
}

#[test]
fn a_program_is_exported_and_read_back() {
    // Scattered bytes, atomics, scratchpads, events between CTAs, several GPUs, host phases.
    for name in ["spmv", "histogram", "reduction", "jacobi", "sssp-owners", "pathfinder", "lstm-layer2"] {
        let Ok(workload) = tombolo_programs::find(name) else { panic!("{name}") };
        let request = Request::new(workload, Scale::new(1, 2048).unwrap(), &[], 1).unwrap();
        let recording = bench::record(workload, &request, &RecordOptions::default(), Mode::Auto).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (native, table) = (folder.path().join("native.tombolo"), folder.path().join("table.csv"));
        trace::write(&recording, &native).unwrap();
        trace::export(&native, &table).unwrap();
        let read = open(&table).unwrap();
        let arrays = |program: &dyn Program| -> Vec<_> {
            program.arrays().iter().filter(|array| array.bytes > 0).cloned().collect()
        };
        assert_eq!(arrays(&*read), arrays(&recording), "{name}");
        assert_eq!(read.setup(), recording.setup(), "{name}");
        assert_eq!(host_reads(&*read), host_reads(&recording), "{name}");
        assert_eq!(launched(&*read), launched(&recording), "{name}");
        let launches =
            |program: &dyn Program| -> Vec<_> { program.commands().iter().filter_map(Command::kernel).collect() };
        for (was, is) in launches(&recording).into_iter().zip(launches(&*read)) {
            let (was, is) = (&recording.kernels()[was as usize], &read.kernels()[is as usize]);
            assert_eq!((&is.name, is.ctas, is.threads_per_cta), (&was.name, was.ctas, was.threads_per_cta), "{name}");
            assert_eq!(
                (is.shared_bytes, is.registers, is.class),
                (was.shared_bytes, was.registers, was.class),
                "{name}"
            );
        }
    }
}

#[test]
fn each_word_of_a_table_is_documented() {
    let page = include_str!("../../../../docs/traces.md");
    let (columns, operations) = trace::table_spellings();
    for word in columns.into_iter().chain(operations) {
        assert!(page.contains(&format!("`{word}`")), "{word}");
    }
}

//! Pages published to their subscribers, in closed form. W: bytes in a packet with a line, that is 16 for the header
//! and 128 for the line.

use crate::common::{apart, design};
use std::ops::Range;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::directed::{CtaBuilder, DirectedProgram};
use tombolo_system::publication::PublicationRecord;
use tombolo_system::{RunRecord, RunSpec, run, run_checked};
use tombolo_types::stream::AtomicResult;
use tombolo_types::{LineSize, Mask, Order, Scope, Semantics};

const GPUS: u64 = 4;
/// Lines per page.
const PAGE: u64 = 512;
/// Bytes in a packet with a line.
const W: u64 = 16 + 128;
/// Bytes in a packet without data.
const CONTROL: u64 = 16;
/// The memory order for plain accesses.
const RELAXED: Order = Order { semantics: Semantics::Relaxed, scope: Scope::Gpu };

/// A single slice, so that stores reach the queue in order, with no limit on stores in flight.
const QUEUE: [&str; 2] = ["l2.slices=1", "l2.posted_stores=16384"];

/// Kernels over pages from line 0 to `lines`, declared as a single array.
fn over(lines: u64, kernels: Vec<Vec<CtaBuilder>>) -> Arc<DirectedProgram> {
    DirectedProgram::of_arrays(LineSize::B128, kernels, &[("x", 0..lines)], &[])
}

/// A CTA per GPU; only the CTA on GPU `gpu` does any work.
fn only(gpu: u64, cta: CtaBuilder) -> Vec<CtaBuilder> {
    let mut cta = Some(cta);
    (0..GPUS).map(|other| if other == gpu { cta.take().unwrap_or_default() } else { CtaBuilder::new() }).collect()
}

fn writes(lines: Range<u64>) -> CtaBuilder {
    CtaBuilder::new().warp(|w| lines.for_each(|line| _ = w.write([line])))
}

fn reads(lines: Range<u64>) -> CtaBuilder {
    CtaBuilder::new().warp(|w| lines.for_each(|line| _ = w.read([line])))
}

fn fence(scope: Scope) -> Order {
    Order { semantics: Semantics::AcquireRelease, scope }
}

/// Runs a program under a design, with and without load checking, and compares the two runs.
fn simulate(machine: &Arc<MachineConfig>, name: &str, settings: &[&str], program: &Arc<DirectedProgram>) -> RunRecord {
    let (machine, design, program) = (Arc::clone(machine), design(name, settings), Arc::clone(program));
    let spec = RunSpec { machine, design, program, pages: None, threads: 1 };
    let (plain, checked) = (run(&spec), run_checked(&spec, None));
    let (plain, checked) = (plain.unwrap_or_else(|error| panic!("{error}")), checked.expect("it runs"));
    assert_eq!(plain.digest, checked.digest);
    assert_eq!(checked.check.expect("it is checked").first, []);
    plain
}

fn to_all(program: &Arc<DirectedProgram>) -> RunRecord {
    simulate(&apart(GPUS, &[]), "gps-all-to-all", &[], program)
}

fn published(record: &RunRecord) -> &PublicationRecord {
    record.publication.as_ref().expect("it publishes")
}

fn link(record: &RunRecord, name: &str) -> u64 {
    record.links.iter().find(|link| link.name == name).expect("a link").bytes
}

fn out(record: &RunRecord) -> u64 {
    (0..GPUS).map(|gpu| link(record, &format!("gpu{gpu}.out"))).sum()
}

#[test]
fn lines_that_are_stored_whole_cross_once_to_each_other_subscriber() {
    let lines = 300;
    let record = to_all(&over(PAGE, vec![only(0, writes(0..lines))]));
    assert_eq!((published(&record).stores, published(&record).queue_hits), (lines, 0));
    assert_eq!(published(&record).published_lines, lines * (GPUS - 1));
    assert_eq!((link(&record, "gpu0.out"), out(&record)), (lines * (GPUS - 1) * W, lines * (GPUS - 1) * W));
    for gpu in 1..GPUS {
        assert_eq!(link(&record, &format!("gpu{gpu}.in")), lines * W);
    }
    // No published line occupies a subscriber's L2; GPU 0's L2 holds its own stores.
    assert_eq!(record.dram.write_bytes, lines * (GPUS - 1) * 128);
    assert_eq!(published(&record).unwritten_bytes, 0);
}

#[test]
fn what_is_published_takes_a_place_in_the_l2_where_the_design_says_so() {
    let program = over(PAGE, vec![only(0, writes(0..300))]);
    let record = simulate(&apart(GPUS, &[]), "gps-all-to-all", &["placement.allocates=true"], &program);
    assert_eq!((record.dram.write_bytes, published(&record).published_lines), (0, 300 * (GPUS - 1)));
}

#[test]
fn parts_of_a_line_leave_together() {
    let (lines, parts) = (100, 4);
    let quarter = |line: u64, part: u64| (line, Mask(0xff << (8 * part)));
    let cta = CtaBuilder::new().warp(|w| {
        for (line, mask) in (0..lines).flat_map(|line| (0..parts).map(move |part| quarter(line, part))) {
            w.store([line], mask, RELAXED);
        }
    });
    let record = to_all(&over(PAGE, vec![only(0, cta)]));
    let found = published(&record);
    assert_eq!((found.stores, found.queue_hits), (lines * parts, lines * (parts - 1)));
    assert_eq!((found.published_lines, out(&record)), (lines * (GPUS - 1), lines * (GPUS - 1) * W));
    assert_eq!((found.republished_lines, found.unwritten_bytes), (0, 0));
}

#[test]
fn bytes_of_a_line_that_nobody_wrote_cross_too() {
    let cta = CtaBuilder::new().warp(|w| (0..100).for_each(|line| _ = w.store([line], Mask(0xff), RELAXED)));
    let record = to_all(&over(PAGE, vec![only(0, cta)]));
    assert_eq!(out(&record), 100 * (GPUS - 1) * W);
    assert_eq!(published(&record).unwritten_bytes, 100 * (GPUS - 1) * 96);
}

#[test]
fn a_second_sweep_hits_where_the_first_one_fits_below_the_watermark() {
    let hits = |lines: u64| {
        let cta = CtaBuilder::new().warp(|w| (0..2).for_each(|_| (0..lines).for_each(|line| _ = w.write([line]))));
        let record = simulate(&apart(GPUS, &QUEUE), "gps-all-to-all", &[], &over(2 * PAGE, vec![only(0, cta)]));
        let found = published(&record);
        (found.queue_hits, found.drains.watermark, found.republished_lines)
    };
    assert_eq!(hits(510), (510, 0, 0));
    // The 511th line drains the first line, which is the next line to be stored.
    assert_eq!(hits(511), (0, 512, 511 * (GPUS - 1)));
}

#[test]
fn the_least_recently_added_line_leaves_though_it_was_written_last() {
    let cta = |last: u64| {
        CtaBuilder::new().warp(|w| {
            (0..510).chain([0, 510]).for_each(|line| _ = w.write([line]));
            w.write([last]);
        })
    };
    let hits = |last| {
        let record = simulate(&apart(GPUS, &QUEUE), "gps-all-to-all", &[], &over(2 * PAGE, vec![only(0, cta(last))]));
        published(&record).queue_hits
    };
    assert_eq!((hits(0), hits(1)), (1, 2), "line 0 has left with the 511th, line 1 is there");
}

#[test]
fn a_release_inside_the_gpu_leaves_the_queue_as_it_is() {
    let run = |scope| {
        let cta = CtaBuilder::new().warp(|w| {
            (0..2).for_each(|_| {
                (0..50).for_each(|line| _ = w.write([line]));
                w.fence(fence(scope));
            });
        });
        to_all(&over(PAGE, vec![only(0, cta)]))
    };
    let (inside, beyond) = (run(Scope::Gpu), run(Scope::Sys));
    assert_eq!((published(&inside).queue_hits, published(&inside).published_lines), (50, 50 * (GPUS - 1)));
    assert_eq!((published(&beyond).queue_hits, published(&beyond).published_lines), (0, 100 * (GPUS - 1)));
    // Three copies of 50 lines at 16 GB/s, out and back: twice, for two fences.
    let least = 2.0 * (50.0 * (GPUS - 1) as f64 * W as f64 / 16e9 + 2.0 * 128e-9);
    assert!(beyond.time_s > inside.time_s + least / 2.0, "{} {}", beyond.time_s, inside.time_s);
}

#[test]
fn atomics_cross_one_by_one_behind_what_was_stored_before() {
    let atomics = |count: u64, around: bool| {
        let cta = CtaBuilder::new().warp(|w| {
            if around {
                w.write([7]);
            }
            (0..count).for_each(|_| _ = w.atomic([7], RELAXED, AtomicResult::Discarded));
            if around {
                w.write([7]);
            }
        });
        to_all(&over(PAGE, vec![only(0, cta)]))
    };
    let plain = atomics(20, false);
    assert_eq!((published(&plain).atomics, published(&plain).queue_hits), (20, 0));
    assert_eq!(published(&plain).published_lines, 0);
    assert_eq!(published(&plain).published_bytes, out(&plain));
    let around = atomics(1, true);
    let found = published(&around);
    assert_eq!((found.drains.atomic, found.drains.release, found.published_lines), (1, 1, 2 * (GPUS - 1)));
}

#[test]
fn publishing_takes_what_the_port_takes() {
    let lines = 40 * PAGE;
    let cta = CtaBuilder::sharing(0..lines, 8, |w, line| _ = w.write([line]));
    let record = to_all(&over(lines, vec![only(0, cta)]));
    let port = (lines * (GPUS - 1) * W) as f64 / 16e9;
    let share = record.time_s / port;
    assert!((1.0..1.01).contains(&share), "{} of {port}", record.time_s);
}

#[test]
fn subscribers_are_looked_up_once_a_page_as_long_as_the_tlb_holds_it() {
    let misses = |pages: u64, settings: &[&str]| {
        let all = [&["l2.slices=1"], settings].concat();
        let cta = CtaBuilder::new().warp(|w| {
            for page in (0..2).flat_map(|_| 0..pages) {
                w.write([page * PAGE]).fence(fence(Scope::Sys));
            }
        });
        let record = simulate(&apart(GPUS, &all), "gps-all-to-all", &[], &over(pages * PAGE, vec![only(0, cta)]));
        let tlb = published(&record).tlb;
        assert_eq!(tlb.accesses, 2 * pages);
        tlb.accesses - tlb.hits
    };
    assert_eq!(misses(32, &["publication.tlb_ways=32"]), 32);
    assert_eq!(misses(9, &["publication.tlb_entries=8", "publication.tlb_ways=8"]), 18, "nine pages of a set of eight");
}

/// Two iterations in which each GPU writes its page and reads the first lines in the next GPU's page.
fn ring(read: u64) -> Arc<DirectedProgram> {
    let write = || (0..GPUS).map(|gpu| writes(gpu * PAGE..(gpu + 1) * PAGE)).collect();
    let next = |gpu: u64| (gpu + 1) % GPUS * PAGE;
    let kernels = vec![write(), (0..GPUS).map(|gpu| reads(next(gpu)..next(gpu) + read)).collect()];
    over(GPUS * PAGE, kernels).with_launch_order(&[0, 1, 0, 1])
}

#[test]
fn who_accesses_a_page_in_the_first_iteration_subscribes_to_it() {
    let record = simulate(&apart(GPUS, &[]), "gps", &[], &ring(PAGE));
    let found = published(&record);
    assert_eq!(found.subscribers.iter().map(|(count, pages)| (&**count, *pages)).collect::<Vec<_>>(), [("2", GPUS)]);
    // To three subscribers in the first iteration, to one in the second.
    assert_eq!(found.published_lines, GPUS * PAGE * (GPUS - 1) + GPUS * PAGE);
    assert_eq!((found.remote_loads, record.paging.expect("pages change").shootdowns), (0, GPUS));
    assert!(record.notes.iter().any(|note| note.contains("first 2 of 4 launches")), "{:?}", record.notes);
    let twice = simulate(
        &apart(GPUS, &[]),
        "gps",
        &["placement.profiled=2"],
        &ring(PAGE).with_launch_order(&[0, 1, 0, 1, 0, 1]),
    );
    assert_eq!(published(&twice).published_lines, 2 * GPUS * PAGE * (GPUS - 1) + GPUS * PAGE);
    // In the first iteration, no GPU reads two out of three copies.
    assert_eq!(found.useless_bytes, GPUS * PAGE * (GPUS - 2) * 128);
    let half = simulate(&apart(GPUS, &[]), "gps", &[], &ring(PAGE / 2));
    let unread = GPUS * PAGE * (GPUS - 2) + 2 * GPUS * PAGE / 2;
    assert_eq!(published(&half).useless_bytes, unread * 128, "and half of the page in each iteration");
}

#[test]
fn a_page_of_one_gpu_is_published_no_more() {
    let write = || (0..GPUS).map(|gpu| writes(gpu * PAGE..(gpu + 1) * PAGE)).collect();
    let record =
        simulate(&apart(GPUS, &[]), "gps", &[], &over(GPUS * PAGE, vec![write()]).with_launch_order(&[0, 0, 0]));
    assert_eq!(published(&record).published_lines, GPUS * PAGE * (GPUS - 1), "in the first iteration alone");
    assert_eq!(published(&record).subscribers.get("1"), Some(&GPUS));
}

/// Pages with four lines; each GPU writes the first line in its part of the pages, in two iterations.
fn spread(pages: u64) -> Arc<DirectedProgram> {
    let part = pages / GPUS;
    let write =
        |gpu: u64| CtaBuilder::new().warp(|w| (gpu * part..(gpu + 1) * part).for_each(|page| _ = w.write([page * 4])));
    over(pages * 4, vec![(0..GPUS).map(write).collect()]).with_launch_order(&[0, 0])
}

#[test]
#[ignore = "deep: 40,000 pages, some fifteen seconds"]
fn every_page_changes_at_the_end_of_tracking_by_few_messages() {
    // Multiplied by the number of GPUs, more events than an event queue can name at one time.
    let pages = 40_000;
    let machine = apart(GPUS, &["page_bytes=512B"]);
    let under = |name| {
        let program = spread(pages);
        run(&RunSpec { machine: Arc::clone(&machine), design: design(name, &[]), program, pages: None, threads: 1 })
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let (tracked, all) = (under("gps"), under("gps-all-to-all"));
    assert_eq!(tracked.paging.as_ref().expect("pages change").shootdowns, pages);
    assert_eq!(published(&tracked).subscribers.get("1"), Some(&pages));
    assert!(tracked.host.events < all.host.events, "{} events, {} without", tracked.host.events, all.host.events);
}

#[test]
fn all_gpus_get_what_two_subscribers_would() {
    let steady = |name, launches: &[u32]| {
        let ring = ring(PAGE).with_launch_order(launches);
        out(&simulate(&apart(GPUS, &[]), name, &[], &ring))
    };
    let iteration = |name| steady(name, &[0, 1, 0, 1, 0, 1]) - steady(name, &[0, 1, 0, 1]);
    assert_eq!(iteration("gps-all-to-all"), iteration("gps") * (GPUS - 1));
}

#[test]
fn who_has_no_replica_finds_its_own_stores_in_the_queue_and_the_rest_at_a_subscriber() {
    // Pages in the first half belong to GPU 0 and GPU 1; GPU 3 accesses them later.
    let first = vec![writes(0..PAGE), reads(0..PAGE), CtaBuilder::new(), CtaBuilder::new()];
    let loads = only(3, reads(0..100));
    let own =
        only(3, CtaBuilder::new().warp(|w| (0..100).for_each(|line| _ = w.write([line]).read([line]).use_result(1))));
    let run = |kernels: &[u32]| {
        let program = over(PAGE, vec![first.clone(), loads.clone(), own.clone()]).with_launch_order(kernels);
        simulate(&apart(GPUS, &[]), "gps", &[], &program)
    };
    let (before, remote, forwarded) = (run(&[0, 0]), run(&[0, 0, 1]), run(&[0, 0, 2]));
    assert_eq!(out(&remote) - out(&before), 100 * (CONTROL + W), "a request and an answer a line");
    assert_eq!(published(&remote).remote_loads, 100);
    assert_eq!((published(&forwarded).forwards, published(&forwarded).remote_loads), (100, 0));
    assert_eq!(out(&forwarded) - out(&before), 100 * 2 * W, "what it stores goes to both subscribers");
}

#[test]
fn a_load_of_more_than_the_queue_has_follows_its_entry_to_the_home() {
    let first = vec![writes(0..PAGE), reads(0..PAGE), CtaBuilder::new(), CtaBuilder::new()];
    let part = CtaBuilder::new().warp(|w| {
        for line in 0..50 {
            w.store([line], Mask(0xff), RELAXED).read([line]).use_result(1);
        }
    });
    let program = over(PAGE, vec![first, only(3, part)]).with_launch_order(&[0, 0, 1]);
    let record = simulate(&apart(GPUS, &[]), "gps", &[], &program);
    let found = published(&record);
    assert_eq!((found.drains.load, found.remote_loads, found.forwards), (50, 50, 0));
}

#[test]
fn an_atomic_with_a_result_of_who_has_no_replica_is_answered_when_all_have_its_value() {
    let first = vec![writes(0..PAGE), reads(0..PAGE), reads(0..PAGE), CtaBuilder::new()];
    let atomics = |result| {
        let cta = CtaBuilder::new().warp(|w| {
            (0..50).for_each(|line| _ = w.write([line]).atomic([line], RELAXED, result).use_result(1).write([line]));
        });
        let program = over(PAGE, vec![first.clone(), only(3, cta)]).with_launch_order(&[0, 0, 1]);
        simulate(&apart(GPUS, &[]), "gps", &[], &program)
    };
    let record = atomics(AtomicResult::Returned);
    assert_eq!(published(&record).atomics, 50, "at the home alone, which sends the values on");
    assert_eq!(published(&record).drains.atomic, 50);
    // Three trips per line: the entry and its acknowledgment, the atomic, the value, and back.
    assert!(record.time_s > 50.0 * 3.0 * 2.0 * 128e-9, "{}", record.time_s);
}

#[test]
fn a_store_behind_an_unanswered_atomic_of_its_line_is_not_published_ahead_of_its_value() {
    let first = vec![writes(0..PAGE), reads(0..PAGE), reads(0..PAGE), CtaBuilder::new()];
    let stores = |atomic: bool| {
        let cta = CtaBuilder::new().warp(|w| {
            if atomic {
                w.atomic([0], RELAXED, AtomicResult::Returned);
            }
            w.write([0]);
        });
        let program = over(PAGE, vec![first.clone(), only(3, cta)]).with_launch_order(&[0, 0, 1]);
        simulate(&apart(GPUS, &[]), "gps", &[], &program).time_s
    };
    // The kernel's end sends the store: three trips later, to the home with the atomic, to the remaining subscribers,
    // and back.
    assert!(stores(true) - stores(false) > 3.0 * 128e-9, "{} and {} s", stores(true), stores(false));
}

#[test]
fn a_store_of_the_system_leaves_one_copy_that_all_use_from_afar() {
    let system = Order { semantics: Semantics::Relaxed, scope: Scope::Sys };
    let store = only(2, CtaBuilder::new().warp(|w| _ = w.store([9], Mask(1), system)));
    let later = only(1, CtaBuilder::new().warp(|w| (0..100).for_each(|line| _ = w.write([line]))));
    let program = over(2 * PAGE, vec![store, later.clone()]);
    let record = to_all(&program);
    let found = published(&record);
    assert_eq!((found.collapses, found.stores, found.published_lines), (1, 0, 0));
    assert_eq!(record.paging.expect("pages change").shootdowns, 1);
    // GPU 2 keeps its copy, and GPU 1 stores there.
    assert_eq!(link(&record, "gpu1.out"), 100 * W);
    assert_eq!(link(&record, "gpu2.in"), 100 * W);
    let without = to_all(&over(2 * PAGE, vec![later]));
    assert_eq!((published(&without).collapses, published(&without).published_lines), (0, 100 * (GPUS - 1)));
}

#[test]
fn who_loads_subscribes_where_nobody_does_by_default() {
    let reading = vec![CtaBuilder::new(), reads(0..PAGE), reads(0..PAGE), CtaBuilder::new()];
    let program = over(PAGE, vec![only(0, writes(0..PAGE)), reading]).with_launch_order(&[0, 1, 0, 1]);
    let record = simulate(&apart(GPUS, &[]), "gps-on-read", &[], &program);
    let found = published(&record);
    assert_eq!(record.paging.expect("pages change").migrations, 2, "a copy for each reader");
    assert_eq!(found.published_lines, PAGE * 2, "in the second iteration");
    assert_eq!(found.subscribers.get("3"), Some(&1));
}

#[test]
fn subscriptions_by_hand_are_those_of_the_pages_that_they_name() {
    let by_hand = |text: &str| format!("placement.by_hand={text}");
    let settings = |text: &str| ["placement.subscriptions=manual".to_owned(), by_hand(text)];
    let program = over(3 * PAGE, vec![only(0, writes(0..3 * PAGE))]);
    let published_to = |text: &str| {
        let settings = settings(text);
        simulate(&apart(GPUS, &[]), "gps", &settings.each_ref().map(|setting| &**setting), &program)
    };
    let record = published_to("x[65536..65540]: 0 2; x[131072..196608]: 1");
    let found = published(&record);
    // The first page belongs to GPU 0, the second has a copy on GPU 2, the third belongs only to GPU 1, which receives
    // all stores.
    assert_eq!(found.published_lines, PAGE);
    assert_eq!((link(&record, "gpu2.in"), link(&record, "gpu1.in")), (PAGE * W, PAGE * W));
    assert_eq!((found.subscribers.get("1"), found.subscribers.get("2")), (Some(&2), Some(&1)));
    let none = published_to("nothing");
    assert_eq!((published(&none).stores, out(&none)), (0, 0));
    for (text, why) in
        [("y: 0", "no array \"y\"; the program names x"), ("x: 9", "no GPU 9"), ("x[0..999999]: 1", "999999")]
    {
        let settings = settings(text);
        let design = design("gps", &settings.each_ref().map(|setting| &**setting));
        let (machine, program) = (apart(GPUS, &[]), Arc::clone(&program));
        let error = run(&RunSpec { machine, design, program, pages: None, threads: 1 }).expect_err("it is refused");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn a_full_memory_has_no_replica_of_what_it_has_no_room_for() {
    let pages = 8;
    let read = || (0..GPUS).map(|_| reads(0..pages * PAGE)).collect();
    let room = format!("dram.bytes={}KB", pages * 64 / 2);
    let program = over(pages * PAGE, vec![only(0, writes(0..pages * PAGE)), read()]);
    let record = simulate(&apart(GPUS, &[&room]), "gps-all-to-all", &[], &program);
    let held: u64 = published(&record)
        .subscribers
        .iter()
        .map(|(count, pages)| count.parse::<u64>().expect("a number") * pages)
        .sum();
    assert_eq!(held, GPUS * pages / 2, "as many replicas as there is room for");
}

#[test]
fn a_run_is_the_same_on_any_number_of_threads() {
    let machine = apart(GPUS, &[]);
    let digest = |threads| {
        let (design, program) = (design("gps", &[]), ring(PAGE));
        run(&RunSpec { machine: Arc::clone(&machine), design, program, pages: None, threads }).expect("it runs").digest
    };
    let one = digest(1);
    assert!([2, 3, 8].iter().all(|&threads| digest(threads) == one));
}

//! Temporary: time of the first-touch pass, before and now.
use rustc_hash::{FxHashMap, FxHashSet};
use std::time::Duration;
struct Instant(u64);
fn cpu() -> u64 {
    std::fs::read_to_string("/proc/self/schedstat").unwrap().split(' ').next().unwrap().parse().unwrap()
}
impl Instant {
    fn now() -> Instant {
        Instant(cpu())
    }
    fn elapsed(&self) -> Duration {
        Duration::from_nanos(cpu() - self.0)
    }
}
use tombolo_design::scheduling::{CtaCut, Shape};
use tombolo_system::placement::{FirstTouch, TouchOrder};
use tombolo_system::survey::{Launch, Reader, survey};
use tombolo_types::stream::CtaStream;
use tombolo_types::{Line, ModuleId, On, Page};
use tombolo_workload::bench::{Mode, Request, find, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Touch {
    rank: u32,
    place: u32,
    turn: u8,
    module: ModuleId,
}
fn turn(page: Page, module: u8, modules: u8) -> u8 {
    let first = (page.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % u64::from(modules);
    ((u64::from(module) + u64::from(modules) - first) % u64::from(modules)) as u8
}
struct Old {
    modules: u8,
    lines_per_page: u64,
    known: FxHashSet<(u32, On)>,
    placed: FxHashSet<Page>,
    new: FxHashMap<Page, Touch>,
    touches: Vec<(Page, ModuleId)>,
}
impl Old {
    fn note(&mut self, module: ModuleId, rank: u32, lines: impl Iterator<Item = (u32, Line)>) {
        let shift = self.lines_per_page.trailing_zeros();
        let mut latest = None;
        for (place, line) in lines {
            let page = Page(line.0 >> shift);
            if latest.replace(page) != Some(page) && !self.placed.contains(&page) {
                let touch = Touch { rank, place, turn: turn(page, module.0, self.modules), module };
                self.new.entry(page).and_modify(|best| *best = touch.min(*best)).or_insert(touch);
            }
        }
    }
    fn close(&mut self) {
        self.placed.extend(self.new.keys().copied());
        let mut new: Vec<_> = self.new.drain().map(|(page, touch)| (page, touch.module)).collect();
        new.sort_unstable();
        self.touches.extend(new);
    }
}
impl Reader for Old {
    fn launch(&mut self, launch: Launch) -> bool {
        self.close();
        self.known.insert((launch.kernel, launch.on))
    }
    fn cta(&mut self, module: ModuleId, rank: u32, stream: &CtaStream) {
        self.note(module, rank, (0..).zip(stream.accesses.iter().map(|access| access.line)));
    }
}
struct Nothing(FxHashSet<(u32, On)>);
impl Reader for Nothing {
    fn launch(&mut self, launch: Launch) -> bool {
        self.0.insert((launch.kernel, launch.on))
    }
    fn cta(&mut self, _: ModuleId, _: u32, _: &CtaStream) {}
}
fn main() {
    for spelled in std::env::args().skip(1) {
        let mut parts = spelled.split(',');
        let name = parts.next().unwrap();
        let given: Vec<_> =
            parts.filter_map(|t| t.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()))).collect();
        let workload = find(name).unwrap();
        let request = Request::new(workload, Scale::FULL, &given, 1).unwrap();
        let program = record(workload, &request, &RecordOptions::default(), Mode::Auto).unwrap();
        let (cut, shape, lines) = (CtaCut::Contiguous, Shape { gpus: 4, modules_per_gpu: 1 }, 512);
        for _ in 0..3 {
            let start = Instant::now();
            survey(&program, cut, shape, &mut [&mut Nothing(FxHashSet::default())]).unwrap();
            let decode = start.elapsed();
            let mut old = Old {
                modules: 4,
                lines_per_page: lines,
                known: FxHashSet::default(),
                placed: FxHashSet::default(),
                new: FxHashMap::default(),
                touches: Vec::new(),
            };
            let start = Instant::now();
            survey(&program, cut, shape, &mut [&mut old]).unwrap();
            old.close();
            let before = start.elapsed();
            let mut first = FirstTouch::new(TouchOrder::new(4, lines));
            let start = Instant::now();
            survey(&program, cut, shape, &mut [&mut first]).unwrap();
            let touches = first.touches();
            let now = start.elapsed();
            let differ = old.touches.iter().zip(&touches).filter(|(a, b)| a != b).count();
            println!(
                "{name}: decode {decode:?}, before {before:?}, now {now:?}; {} pages, {differ} differ",
                touches.len()
            );
        }
    }
}

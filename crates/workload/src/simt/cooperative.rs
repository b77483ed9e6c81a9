//! Cooperative kernels: CTAs as coroutines that run in CTA id order and yield at waits.
//!
//! A coroutine is an `async` block polled by hand, so exactly one CTA runs at a time and the order is identical in
//! every run. A completed wait has a token for the store or atomic that satisfied it, so that a replay knows the true
//! dependency.

use super::cta::{Cta, CtaRecord};
use super::fault::guarded;
use super::launch::Launch;
use super::memory::{Array, Element};
use crate::record::{MemoryBudget, RecordError};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tombolo_types::stream::{Access, Accesses, CtaStream, Op, Token};
use tombolo_types::{LineSize, Order, StopFlag};

/// The instruction that last wrote a flag.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Writer {
    cta: u32,
    warp: u32,
    op: u32,
}

/// An instruction for which another CTA waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenMark {
    pub(crate) warp: u32,
    pub(crate) op: u32,
    pub(crate) token: Token,
}

/// Flag state shared by the CTAs of a cooperative kernel.
pub(crate) struct FlagRegistry {
    /// Last writer of each flag, by array and element.
    writers: RefCell<FxHashMap<(u32, u64), Writer>>,
    tokens: RefCell<FxHashMap<Writer, Token>>,
    /// Instructions with a token, by CTA.
    marks: RefCell<Vec<Vec<TokenMark>>>,
    /// Description of the flag for which each suspended CTA waits.
    waits: RefCell<Vec<String>>,
    /// Count of satisfied waits.
    progress: Cell<u64>,
    /// Memory budget for the streams of all CTAs; `overflow` has the bytes needed and available once the budget is
    /// exceeded.
    room: Cell<MemoryBudget>,
    overflow: Cell<Option<[u64; 2]>>,
}

impl FlagRegistry {
    fn new(ctas: u32, room: MemoryBudget) -> FlagRegistry {
        FlagRegistry {
            writers: RefCell::default(),
            tokens: RefCell::default(),
            marks: RefCell::new(vec![Vec::new(); ctas as usize]),
            waits: RefCell::new(vec![String::new(); ctas as usize]),
            progress: Cell::new(0),
            room: Cell::new(room),
            overflow: Cell::new(None),
        }
    }

    /// Notes that a CTA's stream has grown by `bytes`.
    fn hold(&self, bytes: u64) {
        let mut room = self.room.get();
        self.overflow.set(self.overflow.get().or(room.hold(bytes).err()));
        self.room.set(room);
    }

    /// Notes that a warp's instruction `op` wrote `array[element]`.
    pub(super) fn wrote<T>(&self, array: Array<T>, element: u64, cta: u32, warp: u32, op: u32) {
        self.writers.borrow_mut().insert((array.id, element), Writer { cta, warp, op });
    }

    /// The token for the last write to `array[element]` in this kernel, if any.
    fn token<T>(&self, array: Array<T>, element: u64) -> Option<Token> {
        let writer = *self.writers.borrow().get(&(array.id, element))?;
        let mut tokens = self.tokens.borrow_mut();
        let next = Token(tokens.len() as u32);
        Some(*tokens.entry(writer).or_insert_with(|| {
            let mark = TokenMark { warp: writer.warp, op: writer.op, token: next };
            self.marks.borrow_mut()[writer.cta as usize].push(mark);
            next
        }))
    }
}

impl Cta<'_> {
    /// Makes warp `warp` spin with loads of `order` on `flags[index]` until `ready` accepts the value; other CTAs run
    /// in the meantime. This is the only method for waiting on another CTA, and only in a cooperative kernel. After
    /// several relaxed waits, a single [`Warp::fence`](super::Warp::fence) acquires for all.
    ///
    /// The recorded wait depends on the single store or atomic whose value satisfied it. If several writers together
    /// satisfy a condition (a counter), only the last writer is recorded: give each writer its own flag and wait for
    /// all flags.
    pub async fn wait_until<T: Element>(
        &mut self,
        warp: u32,
        flags: Array<T>,
        index: u64,
        order: Order,
        ready: impl Fn(T) -> bool,
    ) {
        let Some(book) = self.book else { self.fault("waits in a kernel that is not cooperative") };
        let memory = self.launch.memory;
        if !flags.flag || index >= flags.len() || warp >= self.warps() {
            let name = memory.name(flags);
            self.fault(&format!("warp {warp} waits on {name}[{index}], which is no element of an array of flags"));
        }
        let cta = self.index as usize;
        book.hold(self.record.grown());
        poll_fn(|_| match memory.get(flags, index) {
            // The launch ends because its streams exceed the memory budget.
            _ if book.overflow.get().is_some() => Poll::Pending,
            Some(value) if ready(value) => Poll::Ready(()),
            Some(value) => {
                let name = memory.name(flags);
                book.waits.borrow_mut()[cta] = format!("waits for {name}[{index}], which holds {value:?}");
                Poll::Pending
            }
            None => self.fault("waits on a flag in a run of addresses alone"),
        })
        .await;
        book.progress.set(book.progress.get() + 1);
        let address = flags.address(index);
        let token = book.token(flags, index);
        if token.is_some_and(|token| token > Token::MAX) {
            self.fault("waits for more stores than a kernel may mark");
        }
        self.record_wait(warp, order, address, T::BYTES, token);
    }

    /// Records the satisfied wait: on its token, or as a single load if the flag was set before the kernel.
    fn record_wait(&mut self, warp: u32, order: Order, address: u64, bytes: u64, token: Option<Token>) {
        let line: LineSize = self.launch.line;
        let token = token.map(|token| self.token_index(token));
        let record = self.record_of(warp);
        let access = record.accesses.len() as u32;
        record.accesses.push(Access { line: line.line_of(address), mask: line.mask(address, bytes) });
        match token {
            Some(token) => record.ops.push(Op::WaitUntil { order: order.into(), access, token }),
            None => {
                record.ops.push(Op::Load { order: order.into(), accesses: Accesses { start: access, len: 1 } });
                let load = super::deps::Deps::of(record.loads.issue(), false);
                record.wait(load);
            }
        }
    }

    /// Index of `token` in the CTA's list.
    fn token_index(&mut self, token: Token) -> u16 {
        // Waits use half of the 16-bit indices: the other half is for tokens of instructions that others wait for.
        if self.record.tokens.len() >= usize::from(u16::MAX / 2) {
            self.fault("waits more than 32767 times");
        }
        self.record.tokens.push(token);
        self.record.tokens.len() as u16 - 1
    }
}

/// Runs every CTA to its end and passes the finished streams, in CTA order, to `finished`. Until then the streams count
/// against `room`.
pub(crate) fn run_cooperative<K>(
    launch: &Launch<'_>,
    kernel: &K,
    room: MemoryBudget,
    mut finished: impl FnMut(&CtaStream) -> Result<(), RecordError>,
) -> Result<(), RecordError>
where
    K: AsyncFn(&mut Cta<'_>),
{
    let book = FlagRegistry::new(launch.info.ctas, room);
    let mut records: Vec<CtaRecord> = (0..launch.info.ctas).map(|_| CtaRecord::default()).collect();
    let mut ctas: Vec<Cta<'_>> =
        (0_u32..).zip(&mut records).map(|(index, record)| Cta::new(launch, record, Some(&book), index)).collect();
    hand_over(launch, &book, ctas.iter_mut().map(|cta| Some(Box::pin(kernel(cta)) as Coroutine<'_>)).collect())?;
    drop(ctas);
    let mut stream = CtaStream::default();
    for (record, marks) in records.iter_mut().zip(&mut *book.marks.borrow_mut()) {
        marks.sort_by_key(|mark| (mark.warp, mark.op));
        record.finish(marks, &mut stream);
        finished(&stream)?;
    }
    Ok(())
}

type Coroutine<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Polls the unfinished CTAs in order, round after round, until all have ended or no CTA advances.
fn hand_over(
    launch: &Launch<'_>,
    book: &FlagRegistry,
    mut coroutines: Vec<Option<Coroutine<'_>>>,
) -> Result<(), RecordError> {
    let mut context = Context::from_waker(Waker::noop());
    // In the first round each CTA advances to its first wait, and may set flags before the wait.
    let mut advanced = true;
    let stop = StopFlag::current();
    loop {
        let before = book.progress.get();
        for slot in &mut coroutines {
            if stop.is_set() {
                return Err(RecordError::Stopped);
            }
            if let Some(coroutine) = slot {
                let poll = guarded(|| coroutine.as_mut().poll(&mut context));
                if poll.map_err(|fault| RecordError::kernel(launch.info, fault))?.is_ready() {
                    *slot = None;
                    advanced = true;
                }
                if let Some([needs, has]) = book.overflow.get() {
                    return Err(RecordError::Memory { kernel: launch.info.name.clone(), needs, has });
                }
            }
        }
        let Some(stuck) = coroutines.iter().position(Option::is_some) else { return Ok(()) };
        if !std::mem::take(&mut advanced) && book.progress.get() == before {
            return Err(RecordError::Deadlock {
                kernel: launch.info.name.clone(),
                cta: stuck as u32,
                waits: book.waits.borrow()[stuck].clone(),
            });
        }
    }
}

//! A row of a table: its fields by column.

use super::{ARITHMETIC, OPERATION};
use crate::encode::MAX_DISTANCE;
use crate::trace::error::{Mismatch, TraceError};
use csv::StringRecord;
use std::path::Path;
use std::str::FromStr;
use tombolo_types::stream::{AtomicResult, ChainLinks, ComputeClass, Op, PackedOrder};
use tombolo_types::{Order, Scope, Semantics};

/// Longest access in bytes: 255 lines, the most that an instruction of a stream has, of 256 bytes, the longest line size.
pub(super) const MOST_BYTES: u64 = 255 * 256;
/// End of the addresses. Source: assumed; beyond the virtual addresses of any GPU.
pub(super) const LAST_ADDRESS: u64 = 1 << 56;

macro_rules! columns {
    ($($Column:ident = $name:expr),+ $(,)?) => {
        /// A column of a table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Column {
            $($Column),+
        }

        impl Column {
            /// All columns, in discriminant order.
            pub(super) const ALL: &[Column] = &[$(Column::$Column),+];

            /// The name in the table's first row.
            pub(super) fn name(self) -> &'static str {
                match self {
                    $(Column::$Column => $name),+
                }
            }
        }
    };
}

columns! {
    Gpu = "gpu",
    Stream = "stream",
    Kernel = "kernel",
    Launch = "launch",
    Cta = "cta",
    Warp = "warp",
    Operation = OPERATION,
    Order = "order",
    Scope = "scope",
    Array = "array",
    Address = "address",
    Bytes = "bytes",
    Flag = "flag",
    Count = "count",
    Chain = "chain",
    Links = "links",
    Threads = "threads",
    Registers = "registers",
    SharedBytes = "shared_bytes",
}

/// The host's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostOperation {
    Copy { to_device: bool },
    Access { writes: bool },
    Synchronize,
    Array,
}

/// Words of the host's operations.
pub(super) const HOST_OPERATIONS: [(&str, HostOperation); 6] = [
    ("copy-to-device", HostOperation::Copy { to_device: true }),
    ("copy-to-host", HostOperation::Copy { to_device: false }),
    ("host-write", HostOperation::Access { writes: true }),
    ("host-read", HostOperation::Access { writes: false }),
    ("synchronize", HostOperation::Synchronize),
    ("array", HostOperation::Array),
];

/// The kinds of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessKind {
    Load,
    Store,
    Atomic(AtomicResult),
    Wait,
}

/// Words of accesses.
pub(super) const ACCESSES: [(&str, AccessKind); 5] = [
    ("load", AccessKind::Load),
    ("store", AccessKind::Store),
    ("atom", AccessKind::Atomic(AtomicResult::Returned)),
    ("red", AccessKind::Atomic(AtomicResult::Discarded)),
    ("wait", AccessKind::Wait),
];

/// A warp's operations without a place in memory of their own, except arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlainKind {
    More,
    Fence,
    Barrier,
    Shared,
    Use,
}

/// Words of plain operations.
pub(super) const PLAIN: [(&str, PlainKind); 5] = [
    ("and", PlainKind::More),
    ("fence", PlainKind::Fence),
    ("barrier", PlainKind::Barrier),
    ("shared", PlainKind::Shared),
    ("use", PlainKind::Use),
];

/// Words of a warp's operations.
pub(super) fn warp_words() -> impl Iterator<Item = &'static str> {
    let accesses = ACCESSES.iter().map(|(word, _)| *word);
    accesses.chain(PLAIN.iter().map(|(word, _)| *word)).chain(ARITHMETIC.iter().map(|(word, _)| *word))
}

/// A warp's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WarpOperation {
    /// An access, with its order.
    Access(AccessKind, PackedOrder),
    /// Further bytes of the access before.
    More,
    /// An operation without an address.
    Plain(Op),
}

impl WarpOperation {
    /// True if the row has an address.
    pub(super) fn has_address(self) -> bool {
        !matches!(self, WarpOperation::Plain(_))
    }
}

/// The columns of a table: the place of each in a row, if the table has it.
pub(super) struct Columns([Option<usize>; Column::ALL.len()]);

impl Columns {
    /// Reads the first row.
    pub(super) fn of(header: &StringRecord) -> Result<Columns, Mismatch> {
        let mut places = [None; Column::ALL.len()];
        for (place, name) in header.iter().enumerate() {
            let known = Column::ALL.iter().find(|column| column.name() == name);
            let names = || Column::ALL.iter().map(|column| column.name()).collect::<Vec<_>>().join(", ");
            let column = known.ok_or_else(|| Mismatch::new(format!("a column: {}", names()), name.as_bytes()))?;
            if places[*column as usize].replace(place).is_some() {
                return Err(Mismatch::new("each column once", name.as_bytes()));
            }
        }
        Ok(Columns(places))
    }
}

/// A row of a table.
pub(super) struct Row<'a> {
    pub(super) columns: &'a Columns,
    pub(super) record: &'a StringRecord,
}

impl<'a> Row<'a> {
    /// The field in `column`; empty if the table lacks the column.
    pub(super) fn text(&self, column: Column) -> &'a str {
        self.columns.0[column as usize].and_then(|place| self.record.get(place)).unwrap_or_default()
    }

    /// A mismatch in `column`.
    pub(super) fn mismatch(&self, column: Column, expected: &str) -> Mismatch {
        Mismatch::new(format!("in column {}, {expected}", column.name()), self.text(column).as_bytes())
    }

    /// The number in `column`, if it is not empty.
    pub(super) fn optional<T: TryFrom<u64>>(&self, column: Column) -> Result<Option<T>, Mismatch> {
        let text = self.text(column);
        if text.is_empty() {
            return Ok(None);
        }
        // Data frames write a column of whole numbers as floats if a row has none.
        let text = text.strip_suffix(".0").unwrap_or(text);
        let number = text.strip_prefix("0x").map_or_else(|| u64::from_str(text), |hex| u64::from_str_radix(hex, 16));
        let fits = number.ok().and_then(|number| T::try_from(number).ok());
        let bits = 8 * size_of::<T>();
        fits.map(Some).ok_or_else(|| self.mismatch(column, &format!("a whole number of at most {bits} bits")))
    }

    /// The number in `column`, or `default`.
    pub(super) fn number<T: TryFrom<u64>>(&self, column: Column, default: T) -> Result<T, Mismatch> {
        Ok(self.optional(column)?.unwrap_or(default))
    }

    /// The number in `column`, from 1 to `most`.
    pub(super) fn count(&self, column: Column, default: u16, most: u16) -> Result<u16, Mismatch> {
        let count = self.number(column, default)?;
        if (1..=most).contains(&count) {
            return Ok(count);
        }
        Err(self.mismatch(column, &format!("a number from 1 to {most}")))
    }

    /// The value of the word in `column`.
    fn word<T: Copy>(&self, column: Column, words: &[(&str, T)]) -> Result<T, Mismatch> {
        let text = self.text(column);
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        let listed = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| self.mismatch(column, &format!("one of {}", listed())))
    }

    /// Address or offset, and number of bytes.
    pub(super) fn bytes(&self, most: u64) -> Result<(u64, u64), Mismatch> {
        let (address, bytes) = (self.number(Column::Address, 0_u64)?, self.number(Column::Bytes, 0_u64)?);
        if bytes == 0 || bytes > most {
            return Err(self.mismatch(Column::Bytes, &format!("a number from 1 to {most}")));
        }
        if address.checked_add(bytes).is_none_or(|end| end > LAST_ADDRESS) {
            return Err(self.mismatch(Column::Address, "an address below 2^56"));
        }
        Ok((address, bytes))
    }

    /// Address or offset, and number of bytes, of a warp's access: `None` if no lane accesses anything.
    pub(super) fn accessed(&self) -> Result<Option<(u64, u64)>, Mismatch> {
        if self.text(Column::Bytes) == "0" { Ok(None) } else { self.bytes(MOST_BYTES).map(Some) }
    }

    /// The host's operation in a row without a kernel.
    pub(super) fn host_operation(&self) -> Result<HostOperation, Mismatch> {
        self.word(Column::Operation, &HOST_OPERATIONS)
    }

    /// The warp's operation in a row with a kernel.
    pub(super) fn warp_operation(&self) -> Result<WarpOperation, Mismatch> {
        let operation = self.text(Column::Operation);
        if let Some((_, kind)) = ACCESSES.iter().find(|(word, _)| *word == operation) {
            return Ok(WarpOperation::Access(*kind, self.order(*kind)?));
        }
        if let Some((_, class)) = ARITHMETIC.iter().find(|(word, _)| *word == operation) {
            return self.arithmetic(*class).map(WarpOperation::Plain);
        }
        let Some((_, kind)) = PLAIN.iter().find(|(word, _)| *word == operation) else {
            let words = warp_words().collect::<Vec<_>>().join(", ");
            return Err(self.mismatch(Column::Operation, &format!("an operation of a warp: {words}")));
        };
        Ok(WarpOperation::Plain(match kind {
            PlainKind::More => return Ok(WarpOperation::More),
            PlainKind::Fence => Op::Fence { order: self.fence_order()? },
            PlainKind::Barrier => Op::Barrier,
            PlainKind::Shared => Op::Shared { passes: self.count(Column::Count, 1, u16::MAX)? },
            PlainKind::Use => Op::Use { distance: self.count(Column::Count, 1, u16::from(MAX_DISTANCE))? as u8 },
        }))
    }

    fn arithmetic(&self, class: ComputeClass) -> Result<Op, Mismatch> {
        let count = self.count(Column::Count, 1, u16::MAX)?;
        let chain: u16 = self.number(Column::Chain, count)?;
        if chain > count {
            return Err(self.mismatch(Column::Chain, &format!("at most the count, {count}")));
        }
        let links = match self.text(Column::Links) {
            "" if chain == 0 => ChainLinks::default(),
            "" => ChainLinks { joins: true, awaited: true },
            _ => self.word(Column::Links, &LINKS)?,
        };
        Ok(Op::Compute { class, count, chain, links })
    }

    fn scope(&self) -> Result<Scope, Mismatch> {
        self.word(Column::Scope, &SCOPES)
    }

    /// The order of an access: a load or a store may be weak, a wait acquires or is relaxed.
    fn order(&self, kind: AccessKind) -> Result<PackedOrder, Mismatch> {
        let words: &[Semantics] = match kind {
            AccessKind::Load => &[Semantics::Weak, Semantics::Relaxed, Semantics::Acquire],
            AccessKind::Store => &[Semantics::Weak, Semantics::Relaxed, Semantics::Release],
            AccessKind::Wait => &[Semantics::Acquire, Semantics::Relaxed],
            AccessKind::Atomic(_) => {
                &[Semantics::Relaxed, Semantics::Acquire, Semantics::Release, Semantics::AcquireRelease]
            }
        };
        self.ordered(words)
    }

    fn fence_order(&self) -> Result<PackedOrder, Mismatch> {
        use Semantics::{Acquire, AcquireRelease, Release, SequentiallyConsistent};
        self.ordered(&[AcquireRelease, SequentiallyConsistent, Acquire, Release])
    }

    /// The order and scope of the row; the order is the first of `allowed` if the field is empty.
    fn ordered(&self, allowed: &[Semantics]) -> Result<PackedOrder, Mismatch> {
        let text = self.text(Column::Order);
        let named = |semantics: &&Semantics| semantics.to_string() == text;
        let found = if text.is_empty() { allowed.first() } else { allowed.iter().find(named) };
        let listed = || allowed.iter().map(Semantics::to_string).collect::<Vec<_>>().join(", ");
        let semantics = *found.ok_or_else(|| self.mismatch(Column::Order, &format!("one of {}", listed())))?;
        if semantics != Semantics::Weak {
            return Ok(Order::new(semantics, self.scope()?).into());
        }
        if self.text(Column::Scope).is_empty() {
            return Ok(Order::WEAK.into());
        }
        Err(self.mismatch(Column::Scope, "nothing, as a weak access has no scope"))
    }
}

/// Words of scopes.
const SCOPES: [(&str, Scope); 3] = [("cta", Scope::Cta), ("gpu", Scope::Gpu), ("sys", Scope::Sys)];

/// Words for the dependences of arithmetic instructions.
pub(super) const LINKS: [(&str, ChainLinks); 4] = [
    ("none", ChainLinks { joins: false, awaited: false }),
    ("joins", ChainLinks { joins: true, awaited: false }),
    ("awaited", ChainLinks { joins: false, awaited: true }),
    ("joins+awaited", ChainLinks { joins: true, awaited: true }),
];

/// A row or a table that the csv reader refuses.
pub(super) fn refused(path: &Path, error: csv::Error) -> TraceError {
    let line = error.position().map_or(1, csv::Position::line);
    let found = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(source) => TraceError::io(path, "read")(source),
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            Mismatch { expected: format!("{expected_len} fields"), found: format!("{len}") }.at(path, line)
        }
        _ => Mismatch { expected: "a row of a table".to_owned(), found }.at(path, line),
    }
}

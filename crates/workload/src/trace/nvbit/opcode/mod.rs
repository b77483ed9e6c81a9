//! Classification of SASS opcodes: effect on the memory system, and occupied pipeline.
//!
//! Operations are taken from NVIDIA's "CUDA Binary Utilities", chapter "Instruction Set Reference", Maxwell to
//! Blackwell. An operation absent from the tables only occupies an issue slot and is reported by name.

pub(super) mod limits;
mod operations;

use limits::limit;
use operations::{FP32, FP64, INT, MEMORY, OTHER, SPECIAL, TENSOR};
use tombolo_types::stream::{ComputeClass, PackedOrder};
use tombolo_types::{Order, Scope, Semantics};

/// Memory space that an operation addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemorySpace {
    /// Device memory.
    Global,
    /// A thread's own stack and spilled registers, in device memory.
    Local,
    /// The CTA's scratchpad.
    Shared,
    /// Global, local or shared, depending on the address.
    Generic,
    /// A constant bank; its cache is not modelled.
    Constant,
    /// Textures and surfaces.
    Texture,
}

/// Effect of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpcodeKind {
    /// Arithmetic and control.
    Compute(ComputeClass),
    /// A load.
    Load(MemorySpace),
    /// A store.
    Store(MemorySpace),
    /// An atomic with a result.
    Atomic(MemorySpace),
    /// An atomic without a result.
    Reduction(MemorySpace),
    /// `cp.async`: loads global memory into the scratchpad, past the registers.
    CopyToShared,
    /// Closes the group of all `CopyToShared` issued so far.
    CommitCopies,
    /// Waits until at most the given number of groups (its immediate) is outstanding.
    WaitCopies,
    /// A memory fence.
    Fence,
    /// Invalidates the SM's L1: the second half of an acquire.
    InvalidateL1,
    /// A CTA barrier at which the warp waits.
    Barrier,
    /// A bulk or tensor copy between device memory and scratchpads, by a copy engine.
    BulkCopy,
    /// A prefetch into the L2, or into the L1 as well.
    Prefetch,
    /// A mark of the tracer around the iterations of a spin loop, not an instruction.
    Marker,
}

/// A classified opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opcode {
    /// Effect of the instruction.
    pub(super) kind: OpcodeKind,
    /// Bytes accessed per lane.
    pub(super) width: u8,
    /// Memory order: semantics and scope.
    pub(super) order: PackedOrder,
    /// Number of consecutive registers that hold an address.
    pub(super) address_registers: u8,
    /// Number of consecutive registers per datum: a loaded, stored or computed value.
    pub(super) value_registers: u8,
    /// Number of lanes whose addresses count: fewer than a full warp for matrix loads.
    pub(super) lanes: u8,
    /// True if the operation is in the tables.
    pub(super) known: bool,
    /// True for a load that the L1 does not keep.
    pub(super) past_l1: bool,
    /// True for an atomic of the scratchpad: lanes with the same word follow each other.
    pub(super) lanes_in_turn: bool,
    /// True for a warp-group matrix operation, whose line has a flag before the memory width.
    pub(super) has_commit_flag: bool,
    /// Effects of the operation that are not simulated.
    pub(super) limit: Option<&'static str>,
}

/// Lanes per NVIDIA warp. Source: CUDA C++ Programming Guide, "SIMT Architecture".
pub(super) const LANES: u32 = 32;
/// Bytes per register.
const REGISTER: u8 = 4;
/// Bytes per row for `LDSM` and `STSM`. Source: PTX ISA, `ldmatrix`.
const MATRIX_ROW: u8 = 16;
/// Rows per matrix for `LDSM` and `STSM`, with an address each. Source: PTX ISA, `ldmatrix`.
const MATRIX_ROWS: u8 = 8;
/// Suffixes of loads that the L1 does not keep: `cp.async.cg` and `ld.global.cg`, `ld.volatile` before Volta, and
/// `L1::no_allocate`. Source: PTX ISA, `cp.async` and `ld`; Accel-Sim, `trace_driven.cc` (BYPASS is CACHE_GLOBAL).
const PAST_L1: [&str; 4] = ["BYPASS", "CG", "CV", "NA"];
/// Operations whose effect depends on suffixes.
const SUFFIXED: [&str; 2] = ["BAR", "CCTL"];

impl Opcode {
    /// Classifies a dot-separated opcode, for example `LDG.E.64.STRONG.GPU`.
    pub(super) fn classify(text: &str) -> Opcode {
        let operation = text.split('.').next().unwrap_or(text);
        let suffixes = Suffixes(text);
        let (kind, known) = match kind_of(operation, suffixes) {
            Some(kind) => (kind, true),
            None => (OpcodeKind::Compute(ComputeClass::Other), false),
        };
        let matrix = matches!(operation, "LDSM" | "STSM");
        let width = if matrix { MATRIX_ROW } else { suffixes.width() };
        let lanes = if matrix { MATRIX_ROWS * suffixes.matrices() } else { LANES as u8 };
        Opcode {
            kind,
            width,
            order: suffixes.order(kind).into(),
            address_registers: if suffixes.has("E") { 2 } else { 1 },
            value_registers: match kind {
                OpcodeKind::Load(_) | OpcodeKind::Store(_) if matrix => suffixes.matrices(),
                OpcodeKind::Load(_) | OpcodeKind::Store(_) | OpcodeKind::Atomic(_) | OpcodeKind::Reduction(_) => {
                    width.div_ceil(REGISTER)
                }
                // Register pairs of an A or B fragment; further registers for the accumulators are left out.
                OpcodeKind::Compute(ComputeClass::Fp64 | ComputeClass::Tensor) => 2,
                _ => 1,
            },
            lanes,
            known,
            past_l1: PAST_L1.iter().any(|token| suffixes.has(token))
                || kind == OpcodeKind::Prefetch && !suffixes.has("PF1"),
            lanes_in_turn: matches!(operation, "ATOM" | "ATOMS" | "RED" | "REDAS"),
            has_commit_flag: operation.contains("GMMA"),
            limit: if known { limit(operation, kind, suffixes) } else { Some(limits::UNKNOWN) },
        }
    }

    /// Name of the operation in counts: the text up to the first dot, unless suffixes decide what it does.
    pub(super) fn name(text: &str) -> &str {
        let operation = text.split('.').next().unwrap_or(text);
        if SUFFIXED.contains(&operation) { text } else { operation }
    }

    /// Index of the memory address among the sources; `None` for an operation without a memory address.
    pub(super) fn address_place(self) -> Option<usize> {
        match self.kind {
            OpcodeKind::Load(_) | OpcodeKind::Store(_) | OpcodeKind::Atomic(_) | OpcodeKind::Reduction(_) => Some(0),
            OpcodeKind::Prefetch => Some(0),
            // The memory address follows the scratchpad address.
            OpcodeKind::CopyToShared => Some(1),
            _ => None,
        }
    }
}

fn kind_of(operation: &str, suffixes: Suffixes<'_>) -> Option<OpcodeKind> {
    let classes = [
        (FP32, ComputeClass::Fp32),
        (INT, ComputeClass::Int),
        (FP64, ComputeClass::Fp64),
        (SPECIAL, ComputeClass::Special),
        (TENSOR, ComputeClass::Tensor),
        (OTHER, ComputeClass::Other),
    ];
    let arithmetic = classes.iter().find(|(names, _)| names.contains(&operation));
    if let Some((_, class)) = arithmetic {
        return Some(OpcodeKind::Compute(*class));
    }
    match operation {
        // `bar.arrive` only signals arrival: the warp continues.
        "BAR" if suffixes.has("ARV") => Some(OpcodeKind::Compute(ComputeClass::Other)),
        "BAR" => Some(OpcodeKind::Barrier),
        "CCTL" if suffixes.has("IVALL") => Some(OpcodeKind::InvalidateL1),
        "CCTL" if suffixes.iter().any(|token| token.starts_with("PF")) => Some(OpcodeKind::Prefetch),
        "CCTL" => Some(OpcodeKind::Compute(ComputeClass::Other)),
        _ => MEMORY.iter().find(|(name, _)| *name == operation).map(|(_, kind)| *kind),
    }
}

/// The dot-separated tokens after the operation.
#[derive(Clone, Copy)]
struct Suffixes<'a>(&'a str);

impl<'a> Suffixes<'a> {
    fn iter(self) -> impl Iterator<Item = &'a str> {
        self.0.split('.').skip(1)
    }

    fn has(self, token: &str) -> bool {
        self.iter().any(|other| other == token)
    }

    /// Bytes per access, from the first token that is a number of bits, with or without a preceding type.
    fn width(self) -> u8 {
        self.iter().find_map(bits).map_or(REGISTER, |bits| (bits / 8) as u8)
    }

    /// Number of matrices for an `LDSM` or `STSM`: its last token if this token is a number.
    fn matrices(self) -> u8 {
        match self.iter().last() {
            Some("4") => 4,
            Some("2") => 2,
            _ => 1,
        }
    }

    fn scope(self) -> Option<Scope> {
        self.iter().find_map(|token| match token {
            "CTA" | "SM" => Some(Scope::Cta),
            // `GL` is the spelling on Maxwell and Pascal.
            "GPU" | "GL" => Some(Scope::Gpu),
            "SYS" => Some(Scope::Sys),
            _ => None,
        })
    }

    /// Semantics and scope. Without a named scope the widest applies: too much ordering is slow, too little is wrong.
    fn order(self, kind: OpcodeKind) -> Order {
        let strong = self.has("STRONG") || self.has("MMIO");
        match kind {
            OpcodeKind::Fence => {
                let semantics =
                    if self.has("SC") { Semantics::SequentiallyConsistent } else { Semantics::AcquireRelease };
                Order::new(semantics, self.scope().unwrap_or(Scope::Sys))
            }
            _ if strong => Order::relaxed(self.scope().unwrap_or(Scope::Sys)),
            // CUDA's atomics are relaxed at device scope by default, and before Volta their opcodes lack `STRONG`.
            // Source: CUDA C++ Programming Guide, "Atomic Functions".
            OpcodeKind::Atomic(_) | OpcodeKind::Reduction(_) => Order::relaxed(self.scope().unwrap_or(Scope::Gpu)),
            // Volta writes a plain access `LDG.E.SYS`: without `STRONG` the scope has no meaning.
            _ => Order::WEAK,
        }
    }
}

/// Number of bits denoted by a token, for example `U8`, `S16`, `64`, `F32` or `F16x2`.
fn bits(token: &str) -> Option<u32> {
    let unprefixed = token.strip_prefix("BF").or_else(|| token.strip_prefix(['U', 'S', 'F', 'B']));
    let digits = unprefixed.unwrap_or(token);
    let (digits, lanes) = match digits.split_once('x') {
        Some((digits, lanes)) => (digits, lanes.split('_').next()?.parse().ok()?),
        None => (digits, 1),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let bits = digits.parse::<u32>().ok()?.checked_mul(lanes)?;
    matches!(bits, 8 | 16 | 32 | 64 | 128 | 256).then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> OpcodeKind {
        Opcode::classify(text).kind
    }

    fn order(text: &str) -> Order {
        Opcode::classify(text).order.order()
    }

    #[test]
    fn every_class_of_operation_is_told_apart() {
        let compute = |class| OpcodeKind::Compute(class);
        for (text, expected) in [
            ("FFMA", compute(ComputeClass::Fp32)),
            ("HFMA2.MMA", compute(ComputeClass::Fp32)),
            ("IMAD.WIDE", compute(ComputeClass::Int)),
            ("DADD", compute(ComputeClass::Fp64)),
            ("MUFU.RCP", compute(ComputeClass::Special)),
            ("HMMA.16816.F32", compute(ComputeClass::Tensor)),
            ("EXIT", compute(ComputeClass::Other)),
            ("LDG.E", OpcodeKind::Load(MemorySpace::Global)),
            ("LD.E", OpcodeKind::Load(MemorySpace::Generic)),
            ("LDL", OpcodeKind::Load(MemorySpace::Local)),
            ("LDS.64", OpcodeKind::Load(MemorySpace::Shared)),
            ("LDC.64", OpcodeKind::Load(MemorySpace::Constant)),
            ("TEX.SCR.LL", OpcodeKind::Load(MemorySpace::Texture)),
            ("SUST.D.BA.2D.STRONG.SM", OpcodeKind::Store(MemorySpace::Texture)),
            ("STG.E.128", OpcodeKind::Store(MemorySpace::Global)),
            ("ST.E", OpcodeKind::Store(MemorySpace::Generic)),
            ("STL.64", OpcodeKind::Store(MemorySpace::Local)),
            ("STS.128", OpcodeKind::Store(MemorySpace::Shared)),
            ("ATOM.E.ADD", OpcodeKind::Atomic(MemorySpace::Generic)),
            ("ATOMG.E.CAS.STRONG.GPU", OpcodeKind::Atomic(MemorySpace::Global)),
            ("ATOMS.ADD", OpcodeKind::Atomic(MemorySpace::Shared)),
            ("RED.E.ADD.STRONG.GPU", OpcodeKind::Reduction(MemorySpace::Generic)),
            ("REDG.E.ADD.STRONG.GPU", OpcodeKind::Reduction(MemorySpace::Global)),
            ("LDGSTS.E.BYPASS.128", OpcodeKind::CopyToShared),
            ("LDGDEPBAR", OpcodeKind::CommitCopies),
            ("DEPBAR.LE", OpcodeKind::WaitCopies),
            ("MEMBAR.SC.GPU", OpcodeKind::Fence),
            ("CCTL.IVALL", OpcodeKind::InvalidateL1),
            ("BAR.SYNC.DEFER_BLOCKING", OpcodeKind::Barrier),
            ("BAR.RED.POPC", OpcodeKind::Barrier),
            ("BAR.ARV", compute(ComputeClass::Other)),
            ("UTMALDG.2D", OpcodeKind::BulkCopy),
            ("CCTL.E.PF2", OpcodeKind::Prefetch),
            ("CCTL.E.IV", compute(ComputeClass::Other)),
            ("LDGMC.E.ADD.F32.STRONG.SYS", OpcodeKind::Load(MemorySpace::Global)),
            ("UREDGR.E.ADD.STRONG.GPU", OpcodeKind::Reduction(MemorySpace::Global)),
            ("USTGR.E", OpcodeKind::Store(MemorySpace::Global)),
            ("STAS", OpcodeKind::Store(MemorySpace::Shared)),
            ("REDAS.ADD", OpcodeKind::Reduction(MemorySpace::Shared)),
            ("REPLAY_START", OpcodeKind::Marker),
        ] {
            assert_eq!(kind(text), expected, "{text}");
            assert!(Opcode::classify(text).known, "{text}");
        }
    }

    #[test]
    fn no_operation_is_in_two_tables() {
        let mut all: Vec<&str> = [FP32, INT, FP64, SPECIAL, TENSOR, OTHER].concat();
        all.extend(MEMORY.iter().map(|(name, _)| name));
        all.extend(["BAR", "CCTL"]);
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn loads_that_the_l1_does_not_keep_are_told_by_suffix() {
        for (text, past) in [
            ("LDGSTS.E.BYPASS.LTC128B.128", true),
            ("LDG.E.NA", true),
            ("LD.E.CG", true),
            ("CCTL.E.PF2", true),
            ("CCTL.E.PF1", false),
            ("LDGSTS.E.128", false),
            ("LDG.E.EF", false),
        ] {
            assert_eq!(Opcode::classify(text).past_l1, past, "{text}");
        }
    }

    #[test]
    fn an_unknown_operation_takes_an_issue_slot_and_says_so() {
        let opcode = Opcode::classify("FROB.64");
        assert_eq!(opcode.kind, OpcodeKind::Compute(ComputeClass::Other));
        assert!(!opcode.known);
    }

    #[test]
    fn the_width_comes_from_a_token() {
        for (text, width) in [
            ("LDG.E", 4),
            ("LDG.E.U8", 1),
            ("LDG.E.S8", 1),
            ("LDG.E.U16.CONSTANT", 2),
            ("LDG.E.64.STRONG.GPU", 8),
            ("LDG.E.LTC128B.128", 16),
            ("LDS.U.128", 16),
            ("LDGSTS.E.BYPASS.LTC128B.128.CONSTANT", 16),
            ("ATOMG.E.ADD.F16x2.RN.STRONG.GPU", 4),
            ("ATOMG.E.ADD.F64.RN.STRONG.GPU", 8),
            ("RED.E.ADD.BF16x2_V2.RN", 4),
            ("ATOMG.E.ADD.S32.STRONG.GPU", 4),
            ("SULD.D.BA.2D", 4),
            ("LDG.E.1000000", 4),
            ("LDSM.16.M88.4", 16),
        ] {
            assert_eq!(Opcode::classify(text).width, width, "{text}");
        }
    }

    #[test]
    fn strong_accesses_carry_their_scope() {
        assert_eq!(order("LDG.E.STRONG.GPU"), Order::relaxed(Scope::Gpu));
        assert_eq!(order("LDG.E.64.STRONG.SYS"), Order::relaxed(Scope::Sys));
        assert_eq!(order("STG.E.STRONG.SM"), Order::relaxed(Scope::Cta));
        assert_eq!(order("ST.E.STRONG.CTA"), Order::relaxed(Scope::Cta));
        assert_eq!(order("ATOMG.E.ADD.STRONG.SYS"), Order::relaxed(Scope::Sys));
        assert_eq!(order("LDG.E.SYS"), Order::WEAK, "how Volta writes a plain load");
        assert_eq!(order("RED.E.ADD"), Order::relaxed(Scope::Gpu), "as before Volta");
    }

    #[test]
    fn fences_carry_semantics_and_scope() {
        let sc = Semantics::SequentiallyConsistent;
        let both = Semantics::AcquireRelease;
        for (text, semantics, scope) in [
            ("MEMBAR.SC.GPU", sc, Scope::Gpu),
            ("MEMBAR.SC.SYS", sc, Scope::Sys),
            ("MEMBAR.ALL.GPU", both, Scope::Gpu),
            ("MEMBAR.ALL.SYS", both, Scope::Sys),
            ("MEMBAR.ALL.CTA", both, Scope::Cta),
            ("MEMBAR.GL", both, Scope::Gpu),
            ("MEMBAR", both, Scope::Sys),
        ] {
            assert_eq!(order(text), Order::new(semantics, scope), "{text}");
        }
    }

    #[test]
    fn a_matrix_load_reads_rows_from_the_first_lanes() {
        assert_eq!(Opcode::classify("LDSM.16.M88").lanes, 8);
        let four = Opcode::classify("LDSM.16.MT88.4");
        assert_eq!((four.lanes, four.width, four.value_registers), (32, 16, 4));
    }
}

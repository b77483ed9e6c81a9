//! Effects of operations that are not simulated, for notes and for `trace info`.

use super::{MemorySpace, OpcodeKind, Suffixes};

/// Limit of an operation that is in no table.
pub(in crate::trace::nvbit) const UNKNOWN: &str = "the operation is unknown and only takes an issue slot";
/// Limit of a bulk copy.
pub(in crate::trace::nvbit) const BULK: &str = "traffic and completion of bulk copies";

/// Effect of a known operation missing from the simulation; `None` if the simulation has all effects.
pub(super) fn limit(operation: &str, kind: OpcodeKind, suffixes: Suffixes<'_>) -> Option<&'static str> {
    match kind {
        OpcodeKind::BulkCopy => return Some(BULK),
        OpcodeKind::Load(MemorySpace::Constant) => return Some("the cache of constants"),
        _ => {}
    }
    Some(match operation {
        "ARRIVES" | "SYNCS" => "arrivals at mbarriers and waits for them",
        "UCGABAR_ARV" | "UCGABAR_WAIT" => "barriers of clusters",
        "BAR" if suffixes.has("ARV") => "arrivals at barriers without a wait",
        "BGMMA" | "HGMMA" | "IGMMA" | "QGMMA" => "operands that matrix units read from the scratchpad",
        "UTCHMMA" | "UTCIMMA" | "UTCOMMA" | "UTCQMMA" => "operands that matrix units read from the scratchpad",
        "UTMACMDFLUSH" | "WARPGROUP" => "groups of asynchronous operations",
        "FENCE" | "UTMACCTL" => "order between asynchronous and other accesses",
        "LDGMC" => "the reduction of a multicast load: it reads one copy",
        "STAS" | "REDAS" => "completion of asynchronous stores to a cluster",
        "CCTL" if kind != OpcodeKind::InvalidateL1 && kind != OpcodeKind::Prefetch => "control of single cache lines",
        "CCTLL" | "CCTLT" => "control of single cache lines",
        "ALD" | "AST" | "IPA" | "ISBERD" => "attributes of the graphics pipeline",
        _ => return None,
    })
}

//! PTX names beyond the litmus grammar: a test with this name is unsupported, with a reason, instead of misspelt.
//!
//! Source of all names: PTX ISA 9.0, section 9.7, and for the first row the wider corpus of PTX litmus tests.

/// Reason for the rejection, and the corresponding names.
type RejectedNames = (&'static str, &'static [&'static str]);

const PROXY: &str = "accesses go through the generic proxy";
const ASYNC: &str = "asynchronous operations are not modelled";
const WARP: &str = "a thread of a test is alone in its warp";
const COMPUTE: &str = "registers are computed by ld, add, sub, mul and div";
const CONTROL: &str = "threads branch by beq and its kin, and by goto";

/// Instructions. Each row lists instruction names with a common reason.
const INSTRUCTIONS: &[RejectedNames] = &[
    (PROXY, &["tld", "suld", "cold", "sust", "suatom", "sured", "suq", "tex", "tld4", "txq", "istypep", "ldu"]),
    (ASYNC, &["cp", "mbarrier", "tensormap", "wgmma", "tcgen05", "griddepcontrol", "multimem", "clusterlaunchcontrol"]),
    (
        WARP,
        &["shfl", "vote", "match", "activemask", "redux", "elect", "mma", "wmma", "ldmatrix", "stmatrix", "movmatrix"],
    ),
    ("caches are managed by the protocol", &["prefetch", "prefetchu", "applypriority", "discard", "createpolicy"]),
    (CONTROL, &["bra", "brx", "call", "ret", "exit", "trap", "brkpt", "nanosleep", "pmevent", "setmaxnreg"]),
    (COMPUTE, &["mov", "cvt", "cvta", "isspacep", "mad", "mul24", "mad24", "fma", "rem", "abs", "neg", "min", "max"]),
    (COMPUTE, &["and", "or", "xor", "not", "cnot", "lop3", "shf", "shl", "shr", "selp", "slct", "set", "setp", "prmt"]),
    (COMPUTE, &["popc", "clz", "bfind", "fns", "brev", "bfe", "bfi", "bmsk", "szext", "sad", "dp4a", "dp2a", "addc"]),
    (COMPUTE, &["subc", "madc", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh", "copysign", "testp"]),
    ("the stack is not modelled", &["alloca", "stacksave", "stackrestore", "mapa", "getctarank"]),
];

/// Dotted modifiers. Each row lists modifier names with a common reason.
const MODIFIERS: &[RejectedNames] = &[
    (PROXY, &["proxy", "nc", "mmio"]),
    (ASYNC, &["async", "bulk", "mbarrier_init", "op_restrict", "sync_restrict"]),
    ("locations are global", &["shared", "local", "const", "param"]),
    ("caches are managed by the protocol", &["ca", "cg", "cs", "lu", "cv", "wb", "wt", "level", "L1", "L2", "unified"]),
    ("a value is an integer of at most 64 bits", &["b128", "f16", "bf16", "f16x2", "bf16x2", "f32", "f64", "noftz"]),
    ("a location is one value", &["v2", "v4", "v8"]),
    (COMPUTE, &["lo", "hi", "wide", "sat", "cc", "rn", "rz", "rm", "rp", "ftz", "approx", "full"]),
];

/// Reason why the PTX instruction `name` is rejected; `None` if no such instruction is listed.
pub(super) fn instruction(name: &str) -> Option<&'static str> {
    reason(INSTRUCTIONS, name)
}

/// Reason why the PTX modifier `name` is rejected; `None` if no such modifier is listed.
pub(super) fn modifier(name: &str) -> Option<&'static str> {
    reason(MODIFIERS, name)
}

fn reason(rows: &[RejectedNames], name: &str) -> Option<&'static str> {
    rows.iter().find(|(_, names)| names.contains(&name)).map(|(reason, _)| *reason)
}

#!/usr/bin/env bash
# An ordered integer atomic of a warp on one address becomes the atomic of one lane, and only that lane runs the fence.
#
# Guess (written down before the run): a red or atom is one REDG or ATOMG that all active lanes execute, whatever its scope, and a
#   release is a MEMBAR before it that all lanes execute too: PTX orders each thread's own stores before its own atomic.
# Seen: where the address is the same for all lanes by construction (a kernel's parameter), add and the red forms of or and max are
#   counted or reduced over the active lanes (VOTEU, POPC, REDUX), and a lane that is elected by P0 performs one atomic. This holds
#   for release and acq_rel up to .sys: MEMBAR, the atomic and CCTL.IVALL all carry @P0. In shared memory likewise. exch, inc,
#   atom.min and a float add are not joined. sm_90.
# Version: ptxas and nvdisasm 13.5.37 (packages nvidia-cuda-nvcc, nvidia-cuda-nvdisasm).
# Source: PTX ISA, `atom`, `red`, and its memory consistency model: release patterns are of a thread.
# Who meets it: who counts atomics in a trace of machine code (32 operations of the program are one lane of one line); who models
#   contended counters or flags, and takes one atomic per thread; who relates fences of the source to those of the code by thread.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
bin=$(dirname "$(find "$work/venv" -name ptxas -type f)")
"$bin/ptxas" --version | grep release

# Fences and atomics of a kernel with one atomic, with their predicates.
code() {
    cat >"$work/k.ptx" <<PTX
.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q) {
    .reg .u64 %a, %o;
    .reg .b32 %r, %v;
    .shared .align 4 .b32 s;
    ld.param.u64 %a, [p];
    ld.param.u64 %o, [q];
    cvta.to.global.u64 %a, %a;
    cvta.to.global.u64 %o, %o;
    ld.global.u32 %v, [%o];
    $1
    st.global.u32 [%o+64], %r;
    ret;
}
PTX
    "$bin/ptxas" -arch=sm_90 "$work/k.ptx" -o "$work/k.cubin"
    "$bin/nvdisasm" -c "$work/k.cubin" |
        grep -oE '(@!?P[0-9] )?(MEMBAR|ATOMG|ATOMS|REDG|CCTL)\.[A-Z0-9.]+' | paste -sd' '
}
expect() {
    local seen
    seen=$(code "$1")
    printf '%-52s %s\n' "$1" "$seen"
    [ "$seen" = "$2" ]
}

expect 'red.relaxed.gpu.global.add.u32 [%a], %v;' '@P0 REDG.E.ADD.STRONG.GPU'
expect 'red.release.gpu.global.add.u32 [%a], %v;' '@P0 MEMBAR.ALL.GPU @P0 REDG.E.ADD.STRONG.GPU'
expect 'atom.acq_rel.sys.global.add.u32 %r, [%a], %v;' '@P0 MEMBAR.ALL.SYS @P0 ATOMG.E.ADD.STRONG.SYS @P0 CCTL.IVALL'
expect 'atom.acq_rel.cta.global.add.u32 %r, [%a], %v;' '@P0 MEMBAR.ALL.CTA @P0 ATOMG.E.ADD.STRONG.SM'
expect 'red.relaxed.gpu.global.or.b32 [%a], %v;' '@P0 REDG.E.OR.STRONG.GPU'
expect 'red.relaxed.gpu.global.max.u32 [%a], %v;' '@P0 REDG.E.MAX.STRONG.GPU'
expect 'atom.relaxed.gpu.shared.add.u32 %r, [s], %v;' '@P0 ATOMS.ADD'
expect 'atom.acquire.gpu.global.exch.b32 %r, [%a], %v;' 'ATOMG.E.EXCH.STRONG.GPU CCTL.IVALL'
expect 'atom.acquire.gpu.global.min.u32 %r, [%a], %v;' 'ATOMG.E.MIN.STRONG.GPU CCTL.IVALL'
expect 'red.relaxed.gpu.global.inc.u32 [%a], %v;' 'REDG.E.INC.STRONG.GPU'
expect 'red.relaxed.gpu.global.add.f32 [%a], 0f3F800000;' 'REDG.E.ADD.F32.FTZ.RN.STRONG.GPU'

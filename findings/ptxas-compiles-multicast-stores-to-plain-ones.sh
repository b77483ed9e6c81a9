#!/usr/bin/env bash
# multimem.st and multimem.red leave no trace in the machine code: they are the STG and the REDG of a plain store and a plain red.
#
# Guess (written down before the run): multimem.st, multimem.red and multimem.ld_reduce each become an instruction of their own,
#   or carry a flag, as the access goes to a switch that multicasts or reduces; a weak multimem.ld_reduce is no strong access.
# Seen: the cubins of multimem.st and st, and of multimem.red and red (weak, relaxed and release), hold the same bytes of code.
#   Only multimem.ld_reduce is known by its opcode, LDGMC, and that is STRONG.SYS even where the PTX says .weak. sm_90, sm_100.
# Version: ptxas and nvdisasm 13.5.37 (packages nvidia-cuda-nvcc, nvidia-cuda-nvdisasm).
# Source: PTX ISA, `multimem.ld_reduce, multimem.st, multimem.red`.
# Who meets it: who traces kernels that reduce in the switch (NVLS): a store to n GPUs and a store to one are the same line of the
#   trace, and only the address tells them apart; who counts NVLink bytes of such a trace by opcode.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
bin=$(dirname "$(find "$work/venv" -name ptxas -type f)")
"$bin/ptxas" --version | grep release

# Code of a kernel with one instruction, with its encoding.
code() {
    cat >"$work/k.ptx" <<PTX
.version 8.8
.target $1
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q) {
    .reg .u64 %a, %o;
    .reg .b32 %r, %v;
    ld.param.u64 %a, [p];
    ld.param.u64 %o, [q];
    cvta.to.global.u64 %a, %a;
    cvta.to.global.u64 %o, %o;
    ld.global.u32 %v, [%o];
    $2
    ret;
}
PTX
    "$bin/ptxas" -arch="$1" "$work/k.ptx" -o "$work/k.cubin"
    "$bin/nvdisasm" -hex -c "$work/k.cubin" | grep -E '/\* 0x|/\*[0-9a-f]{4}\*/'
}
memory() { grep -oE '\b(STG|REDG|LDGMC)\.[A-Z0-9.]+' <<<"$1" | head -n 1; }

for arch in sm_90 sm_100; do
    while IFS='|' read -r multicast plain; do
        one=$(code "$arch" "$multicast")
        other=$(code "$arch" "$plain")
        printf '%-7s %-52s %s\n' "$arch" "$multicast" "$(memory "$one")"
        [ -n "$(memory "$one")" ]
        [ "$one" = "$other" ]
    done <<'PAIRS'
multimem.st.weak.global.u32 [%a], %v;|st.weak.global.u32 [%a], %v;
multimem.st.release.sys.global.u32 [%a], %v;|st.release.sys.global.u32 [%a], %v;
multimem.red.relaxed.sys.global.add.u32 [%a], %v;|red.relaxed.sys.global.add.u32 [%a], %v;
multimem.red.release.sys.global.add.u32 [%a], %v;|red.release.sys.global.add.u32 [%a], %v;
PAIRS
    for order in weak relaxed.sys; do
        load=$(code "$arch" "multimem.ld_reduce.$order.global.add.u32 %r, [%a]; st.global.u32 [%o+64], %r;")
        opcode=$(grep -oE '\bLDGMC\.[A-Z0-9.]+' <<<"$load")
        printf '%-7s %-52s %s\n' "$arch" "multimem.ld_reduce.$order" "$opcode"
        [ "$opcode" = "LDGMC.E.ADD.32.STRONG.SYS" ]
    done
done

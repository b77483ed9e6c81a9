#!/usr/bin/env bash
# An acquire load whose value nobody uses: ptxas drops the load and keeps the acquire.
#
# Guess (written down before the run): the load stays, as it is a synchronising operation; or load and acquire go together, as
#   an unused relaxed load goes.
# Seen: no LDG, and a CCTL.IVALL, which drops the L1. An unused relaxed load goes without a trace, an unused volatile load stays.
#   sm_75, sm_80, sm_90, sm_100 and sm_120 agree.
# Version: ptxas and nvdisasm 13.5.37 (packages nvidia-cuda-nvcc, nvidia-cuda-nvdisasm).
# Source: PTX ISA, `ld` and memory consistency model: an acquire pattern synchronises through the value that it reads.
# Who meets it: authors of microbenchmarks that time `ld.acquire` without using its value: they time an invalidation of the L1, and
#   no access; of litmus tests whose acquiring thread does not record what it read.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
bin=$(dirname "$(find "$work/venv" -name ptxas -type f)")
"$bin/ptxas" --version | grep release

expect() {
    cat >"$work/k.ptx" <<PTX
.version 8.8
.target $1
.address_size 64
.visible .entry k(.param .u64 a) {
    .reg .u64 %a; .reg .u32 %r1;
    ld.param.u64 %a, [a];
    cvta.to.global.u64 %a, %a;
    $2.global.u32 %r1, [%a];
    ret;
}
PTX
    "$bin/ptxas" -arch="$1" "$work/k.ptx" -o "$work/k.cubin"
    found=$("$bin/nvdisasm" -c "$work/k.cubin" | grep -oE '\b(LDG|MEMBAR|CCTL)\.[A-Z.]+' | tr '\n' ' ' || true)
    printf '%-7s %-16s %s\n' "$1" "$2" "${found:-nothing}"
    [ "$found" = "$3" ] || { echo "expected: ${3:-nothing}" >&2; exit 1; }
}
for arch in sm_75 sm_80 sm_90 sm_100 sm_120; do
    expect "$arch" ld.acquire.gpu "CCTL.IVALL "
    expect "$arch" ld.relaxed.gpu ""
    expect "$arch" ld.volatile "LDG.E.STRONG.SYS "
done

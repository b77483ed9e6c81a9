#!/usr/bin/env bash
# fence.proxy.alias, which orders accesses of one thread through two virtual addresses of one location, becomes two
# sequentially consistent fences, one of them at system scope, and drops the L1.
#
# Guess (written down before the run): one MEMBAR, or one CCTL.
# Seen: MEMBAR.SC.SYS, MEMBAR.SC.GPU and CCTL.IVALL (sm_80; on sm_90, sm_100 and sm_120 the fence at GPU scope is first). fence.sc.sys
#   alone becomes MEMBAR.SC.SYS and CCTL.IVALL: the fence between two aliases costs more than the strongest fence between GPUs.
# Version: ptxas and nvdisasm 13.5.37 (packages nvidia-cuda-nvcc, nvidia-cuda-nvdisasm).
# Source: PTX ISA, `membar`/`fence` ("fence.proxy.alias").
# Who meets it: who maps one buffer at two addresses (multicast and unicast windows) and fences between them; who compares litmus
#   tests with and without aliases on a GPU, where this fence hides what a weaker one would show.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
bin=$(dirname "$(find "$work/venv" -name ptxas -type f)")
"$bin/ptxas" --version | grep release

# The fences and invalidations that a statement becomes, sorted.
fences() {
    printf '.version 8.8\n.target %s\n.address_size 64\n.visible .entry k() { %s ret; }\n' "$1" "$2" >"$work/k.ptx"
    "$bin/ptxas" -arch="$1" "$work/k.ptx" -o "$work/k.cubin"
    "$bin/nvdisasm" -c "$work/k.cubin" | grep -oE '\b(MEMBAR|CCTL)\.[A-Z.]+' | sort | tr '\n' ' '
}
for arch in sm_80 sm_90 sm_100 sm_120; do
    alias=$(fences "$arch" "fence.proxy.alias;")
    system=$(fences "$arch" "fence.sc.sys;")
    printf '%-7s proxy.alias: %s| sc.sys: %s\n' "$arch" "$alias" "$system"
    [ "$alias" = "CCTL.IVALL MEMBAR.SC.GPU MEMBAR.SC.SYS " ] && [ "$system" = "CCTL.IVALL MEMBAR.SC.SYS " ]
done

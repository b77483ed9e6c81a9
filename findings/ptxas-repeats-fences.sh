#!/usr/bin/env bash
# Two fences, one behind the other: ptxas emits both, and a wider fence does not absorb a narrower one before it.
#
# Guess (written down before the run): one MEMBAR; with scopes gpu and sys one MEMBAR at sys, which orders all that the other does.
# Seen: two MEMBARs, each with its CCTL.IVALL, which drops the L1: `fence.acq_rel.gpu` twice, and `.gpu` before `.sys`. sm_75,
#   sm_80, sm_90, sm_100 and sm_120 agree. While ptxas merges neighbouring stores, it never merges fences.
# Version: ptxas and nvdisasm 13.5.37 (packages nvidia-cuda-nvcc, nvidia-cuda-nvdisasm).
# Source: PTX ISA, `fence`.
# Who meets it: authors of barriers and queues from parts that each end with a fence: every part pays a MEMBAR and drops the L1;
#   who counts fences in a trace of a GPU to compare with source code.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
bin=$(dirname "$(find "$work/venv" -name ptxas -type f)")
"$bin/ptxas" --version | grep release

for arch in sm_75 sm_80 sm_90 sm_100 sm_120; do
    for fences in "fence.acq_rel.gpu; fence.acq_rel.gpu;" "fence.acq_rel.gpu; fence.acq_rel.sys;"; do
        cat >"$work/k.ptx" <<PTX
.version 8.8
.target $arch
.address_size 64
.visible .entry k() {
    $fences
    ret;
}
PTX
        "$bin/ptxas" -arch="$arch" "$work/k.ptx" -o "$work/k.cubin"
        found=$("$bin/nvdisasm" -c "$work/k.cubin" | grep -oE '\b(MEMBAR|CCTL)\.[A-Z.]+' | tr '\n' ' ')
        printf '%-7s %-38s %s\n' "$arch" "$fences" "$found"
        [ "$(grep -o MEMBAR <<<"$found" | wc -l)" -eq 2 ] && [ "$(grep -o CCTL.IVALL <<<"$found" | wc -l)" -eq 2 ]
    done
done

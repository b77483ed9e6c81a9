#!/usr/bin/env bash
# The wait of a dependent grid for the grid before it, after which a kernel reads what that grid has written, has no invalidation
# of the L1 in its code, where every other acquire beyond the CTA has one.
#
# Guess (written down before the run): griddepcontrol.wait drops the L1 (CCTL.IVALL), since it makes writes of other SMs visible.
# Seen: it becomes ACQBULK alone on sm_90, sm_100 and sm_120, also between two loads of one address, which both stay. ld.acquire.gpu
#   has CCTL.IVALL behind it on all of them. griddepcontrol.launch_dependents is PREEXIT, without a MEMBAR.
# Version: ptxas and nvdisasm 13.5.37 (packages nvidia-cuda-nvcc, nvidia-cuda-nvdisasm).
# Source: PTX ISA, `griddepcontrol` ("all memory operations performed by the prerequisite grids are … made visible").
# Who meets it: who models programmatic dependent launches from SASS, and would find no acquire at the kernel boundary; who counts
#   invalidations of a trace.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
bin=$(dirname "$(find "$work/venv" -name ptxas -type f)")
"$bin/ptxas" --version | grep release

# Instructions of a statement that concern memory or other grids, in order.
code() {
    {
        printf '.version 9.0\n.target %s\n.address_size 64\n.visible .entry k(.param .u64 p) {\n' "$1"
        printf '.reg .u64 %%a; .reg .u32 %%r1, %%r2; ld.param.u64 %%a, [p]; %s st.global.u32 [%%a+128], %%r1; ret; }\n' "$2"
    } >"$work/k.ptx"
    "$bin/ptxas" -arch="$1" "$work/k.ptx" -o "$work/k.cubin"
    "$bin/nvdisasm" -c "$work/k.cubin" | grep -oE '\b(ACQBULK|PREEXIT|MEMBAR|CCTL\.IVALL|LDG)\b' | tr '\n' ' '
}
load='ld.global.u32 %r1, [%a];'
again='ld.global.u32 %r2, [%a]; add.u32 %r1, %r1, %r2;'
for arch in sm_90 sm_100 sm_120; do
    wait=$(code "$arch" "$load griddepcontrol.wait; $again")
    acquire=$(code "$arch" "ld.acquire.gpu.global.u32 %r1, [%a];")
    launch=$(code "$arch" "griddepcontrol.launch_dependents;")
    printf '%-7s wait: %s| acquire: %s| launch: %s\n' "$arch" "$wait" "$acquire" "$launch"
    [ "$wait" = "LDG ACQBULK LDG " ] && [ "$acquire" = "LDG CCTL.IVALL " ] && [ "$launch" = "PREEXIT " ]
done

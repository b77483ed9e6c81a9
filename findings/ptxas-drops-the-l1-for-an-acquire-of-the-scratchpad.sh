#!/usr/bin/env bash
# An acquire of the scratchpad at a scope beyond the CTA drops the whole L1, although no other SM can have written the scratchpad:
# on sm_90 and later, not on sm_80.
#
# Guess (written down before the run): no CCTL, as the address is in shared memory.
# Seen: ld.acquire.gpu.shared::cta is LDS and CCTL.IVALL on sm_90, sm_100 and sm_120, and LDS alone on sm_80; at .cta scope it is
#   LDS alone everywhere. A wait for an mbarrier does likewise: mbarrier.try_wait.acquire.cluster has a CCTL.IVALL behind each
#   try, .acquire.cta has none.
# Version: ptxas and nvdisasm 13.5.37 (packages nvidia-cuda-nvcc, nvidia-cuda-nvdisasm).
# Source: PTX ISA, `ld` (".acquire" with ".shared::cta"), `mbarrier.try_wait` (".sem", ".scope").
# Who meets it: who writes a pipeline of bulk copies with waits at cluster scope, and finds no L1 hits between stages; who models
#   one from a trace, where the L1 is dropped at each wait.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
bin=$(dirname "$(find "$work/venv" -name ptxas -type f)")
"$bin/ptxas" --version | grep release

# Number of L1 invalidations in the code of a statement; %b is the address of a scratchpad word.
drops() {
    {
        printf '.version 9.0\n.target %s\n.address_size 64\n.visible .entry k(.param .u64 p) {\n' "$1"
        printf '.reg .u64 %%a, %%s; .reg .pred %%p; .reg .u32 %%b, %%r1; .shared .align 8 .b64 word;\n'
        printf 'ld.param.u64 %%a, [p]; mov.u32 %%b, word; %s st.global.u32 [%%a], %%r1; ret; }\n' "$2"
    } >"$work/k.ptx"
    "$bin/ptxas" -arch="$1" "$work/k.ptx" -o "$work/k.cubin"
    "$bin/nvdisasm" -c "$work/k.cubin" | grep -c 'CCTL.IVALL' || true
}
load='ld.acquire.SCOPE.shared::cta.u32 %%r1, [%%b];'
wait='mbarrier.try_wait.acquire.SCOPE.shared::cta.b64 %%p, [%%b], %%s;'
for arch in sm_80 sm_90 sm_100 sm_120; do
    own=$(drops "$arch" "$(printf "${load/SCOPE/cta}")")
    gpu=$(drops "$arch" "$(printf "${load/SCOPE/gpu}")")
    printf '%-7s ld.acquire of the scratchpad drops the L1: %s at .cta, %s at .gpu' "$arch" "$own" "$gpu"
    if [ "$arch" = sm_80 ]; then
        echo
        [ "$own $gpu" = "0 0" ]
        continue
    fi
    own_wait=$(drops "$arch" "$(printf "${wait/SCOPE/cta}")")
    cluster_wait=$(drops "$arch" "$(printf "${wait/SCOPE/cluster}")")
    printf '; mbarrier wait: %s at .cta, %s at .cluster\n' "$own_wait" "$cluster_wait"
    [ "$own $gpu $own_wait $cluster_wait" = "0 1 0 1" ]
done

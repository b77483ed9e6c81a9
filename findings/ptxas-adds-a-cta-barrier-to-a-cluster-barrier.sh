#!/usr/bin/env bash
# A cluster barrier has two forms in one kernel: launched without a cluster, its arrival is nothing, and its wait is the CTA's barrier 0.
#
# Guess (written down before the run): barrier.cluster.arrive.release is a MEMBAR and UCGABAR_ARV, barrier.cluster.wait.acquire is
#   UCGABAR_WAIT and CCTL.IVALL, and a kernel launched without a cluster, which is a cluster of one CTA, runs the same code.
# Seen: a branch on a launch parameter in a constant bank chooses between that code and another: the arrival is empty, with no
#   fence, and the wait is BAR.SYNC 0, which the CTA's own barriers use too. What stands between arrival and wait is not overlapped
#   there. A declared size (.reqnctapercluster 2) keeps both forms; only .explicitcluster leaves the cluster's form alone. sm_90.
# Version: ptxas and nvdisasm 13.5.37 (packages nvidia-cuda-nvcc, nvidia-cuda-nvdisasm).
# Source: PTX ISA, `barrier.cluster`, `.explicitcluster`, `.reqnctapercluster`.
# Who meets it: who reads traces of Hopper kernels (a launch without a cluster shows a CTA barrier and no arrival where the source has
#   a cluster barrier); who counts fences or barriers by opcode; who takes barrier 0 for the program's own.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
bin=$(dirname "$(find "$work/venv" -name ptxas -type f)")
"$bin/ptxas" --version | grep release

# Barriers, fences and conditional branches of a kernel with these directives, in the order of the code.
code() {
    cat >"$work/k.ptx" <<PTX
.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) $1 {
    .reg .u64 %a;
    .reg .b32 %r;
    ld.param.u64 %a, [p];
    cvta.to.global.u64 %a, %a;
    st.global.u32 [%a], 1;
    barrier.cluster.arrive.release;
    st.global.u32 [%a+8], 2;
    barrier.cluster.wait.acquire;
    ld.global.u32 %r, [%a+4];
    st.global.u32 [%a+64], %r;
    ret;
}
PTX
    "$bin/ptxas" -arch=sm_90 "$work/k.ptx" -o "$work/k.cubin"
    "$bin/nvdisasm" -c "$work/k.cubin" | grep -oE '@!P0 BRA|MEMBAR\.[A-Z.]+|UCGABAR_[A-Z]+|CCTL\.IVALL|BAR\.SYNC\.[A-Z_]+ 0x0' | paste -sd' '
}
both='@!P0 BRA MEMBAR.ALL.GPU UCGABAR_ARV @!P0 BRA UCGABAR_WAIT CCTL.IVALL BAR.SYNC.DEFER_BLOCKING 0x0'
one='MEMBAR.ALL.GPU UCGABAR_ARV UCGABAR_WAIT CCTL.IVALL'
while IFS='|' read -r directives expected; do
    seen=$(code "$directives")
    printf '%-40s %s\n' "${directives:-no directive}" "$seen"
    [ "$seen" = "$expected" ]
done <<DIRECTIVES
|$both
.reqnctapercluster 2|$both
.explicitcluster|$one
.explicitcluster .reqnctapercluster 2|$one
DIRECTIVES

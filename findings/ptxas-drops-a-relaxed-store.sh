#!/usr/bin/env bash
# Two relaxed stores to one address, one behind the other: ptxas keeps the second alone.
#
# Guess (written down before the run): both stay. Relaxed operations are strong in PTX's memory model, so another thread may
#   read the first value; and two relaxed loads of one address do both stay.
# Seen: one `STG.E.STRONG.GPU`. Of two relaxed loads of one address both stay, and a volatile store behind a volatile store
#   stays as well. Allowed by the model: no thread has to see the first value. sm_75, sm_80, sm_90, sm_100 and sm_120 agree.
# Version: ptxas and nvdisasm 13.5.37 (packages nvidia-cuda-nvcc, nvidia-cuda-nvdisasm).
# Source: PTX ISA, memory consistency model, "strong operations".
# Who meets it: authors of litmus tests with two writes of one thread to one location (CoWW, 2+2W), who run another test than
#   they wrote; of progress counters polled by another GPU, whose intermediate values never appear.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
bin=$(dirname "$(find "$work/venv" -name ptxas -type f)")
"$bin/ptxas" --version | grep release

# Instructions of a kernel with this body that access memory.
sass() {
    cat >"$work/k.ptx" <<PTX
.version 8.8
.target $1
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 o) {
    .reg .u64 %a, %o; .reg .u32 %r<4>;
    ld.param.u64 %a, [a]; ld.param.u64 %o, [o];
    cvta.to.global.u64 %a, %a; cvta.to.global.u64 %o, %o;
    $2
    ret;
}
PTX
    "$bin/ptxas" -arch="$1" "$work/k.ptx" -o "$work/k.cubin"
    "$bin/nvdisasm" -c "$work/k.cubin" | grep -oE '\b(LDG|STG)\.[A-Z0-9.]+' | tr '\n' ' '
}
expect() {
    local found
    found=$(sass "$1" "$3")
    printf '%-7s %-42s %s\n' "$1" "$2" "$found"
    [ "$(grep -oE "$4" <<<"$found" | wc -l)" -eq "$5" ] || { echo "expected $5 of $4" >&2; exit 1; }
}
for arch in sm_75 sm_80 sm_90 sm_100 sm_120; do
    expect "$arch" "two relaxed stores" \
        'st.relaxed.gpu.global.u32 [%a], 1; st.relaxed.gpu.global.u32 [%a], 2;' 'STG\S*STRONG\.GPU' 1
    expect "$arch" "two relaxed loads" \
        'ld.relaxed.gpu.global.u32 %r1, [%a]; ld.relaxed.gpu.global.u32 %r2, [%a];
         add.u32 %r3, %r1, %r2; st.global.u32 [%o], %r3;' 'LDG\S*STRONG\.GPU' 2
    expect "$arch" "two volatile stores" \
        'st.volatile.global.u32 [%a], 1; st.volatile.global.u32 [%a], 2;' 'STG\S*STRONG\.SYS' 2
done

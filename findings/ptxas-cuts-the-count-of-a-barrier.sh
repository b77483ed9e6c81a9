#!/usr/bin/env bash
# A barrier's count of threads beyond 4095 loses its upper bits: `bar.sync 0, 4096` becomes a barrier of the whole CTA, and
# `bar.sync 0, 4128` one of 32 threads. Counts above the 1,024 threads of a CTA are accepted.
#
# Guess (written down before the run): ptxas refuses a count that no CTA has, as it refuses a count that is no multiple of 32
#   and a barrier number above 15.
# Seen: 48 and barrier 16 are refused. 1056 is accepted, and the count in the machine code is 0x420. 4096 and 131072 leave no
#   count, like 0 and like no count at all; 4128 leaves 0x20. No warning. The same on sm_80, sm_90 and sm_120.
# Version: ptxas and nvdisasm 13.5.37 (packages nvidia-cuda-nvcc, nvidia-cuda-nvdisasm).
# Source: PTX ISA, `bar`, `barrier` ("the number of threads participating in the barrier").
# Who meets it: who generates kernels with named barriers and computes the count; who checks them by assembling them.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
bin=$(dirname "$(find "$work/venv" -name ptxas -type f)")
"$bin/ptxas" --version | grep release

# Operands of the barrier in the machine code of a statement, or the word "refused".
operands() {
    printf '.version 9.0\n.target %s\n.address_size 64\n.visible .entry k() {\n%s ret; }\n' "$1" "$2" >"$work/k.ptx"
    if "$bin/ptxas" -arch="$1" "$work/k.ptx" -o "$work/k.cubin" >"$work/said" 2>&1; then
        [ ! -s "$work/said" ] # No warning.
        "$bin/nvdisasm" -c "$work/k.cubin" | grep -o 'BAR\.SYNC[^;]*' | sed 's/^[^ ]* //; s/ *$//'
    else
        echo refused
    fi
}
for arch in sm_80 sm_90 sm_120; do
    echo "$arch"
    while read -r statement expected; do
        seen=$(operands "$arch" "bar.sync $statement;")
        printf '  bar.sync %-10s %s\n' "$statement" "$seen"
        [ "$seen" = "$expected" ]
    done <<'STATEMENTS'
0 0x0
16 refused
0,48 refused
0,64 0x0, 0x40
0,0 0x0
0,1056 0x0, 0x420
0,4096 0x0
0,4128 0x0, 0x20
0,131072 0x0
STATEMENTS
done

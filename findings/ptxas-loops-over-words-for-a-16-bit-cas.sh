#!/usr/bin/env bash
# atom.cas.b16 is no instruction of the GPU: it becomes a weak load of the word around it and a loop of 32-bit CAS.
#
# Guess (written down before the run): one ATOMG.CAS of 16 bits, as PTX has atom.cas.b16 since sm_70.
# Seen: one LDG without .STRONG (a weak load of 32 bits, which an L1 may answer), then a loop around ATOMG.E.CAS.STRONG.GPU with
#   32 bits. The neighbouring 16 bits are read and compared too: an update of the neighbour makes the loop run again. atom.cas.b32
#   is the ATOMG alone. sm_80, sm_90, sm_100 and sm_120 agree.
# Version: ptxas and nvdisasm 13.5.37 (packages nvidia-cuda-nvcc, nvidia-cuda-nvdisasm).
# Source: PTX ISA, `atom` (".b16 ... cas").
# Who meets it: who traces a program with locks or flags of 16 bits: each atomic is a load and one or more atomics of 4 bytes, and two
#   adjacent locks contend; who counts atomics of a trace against the source.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
bin=$(dirname "$(find "$work/venv" -name ptxas -type f)")
"$bin/ptxas" --version | grep release

# Memory instructions and backward branches of an atom.cas of so many bits.
cas() {
    cat >"$work/k.ptx" <<PTX
.version 8.8
.target $1
.address_size 64
.visible .entry k(.param .u64 p) {
    .reg .u64 %a;
    .reg .b$2 %old, %expected, %new;
    ld.param.u64 %a, [p];
    cvta.to.global.u64 %a, %a;
    mov.u$2 %expected, 1;
    mov.u$2 %new, 2;
    atom.global.cas.b$2 %old, [%a], %expected, %new;
    ret;
}
PTX
    "$bin/ptxas" -arch="$1" "$work/k.ptx" -o "$work/k.cubin"
    "$bin/nvdisasm" -c "$work/k.cubin" | grep -oE '\b(LDG|ATOMG|ATOM)\.[A-Z0-9.]+' | tr '\n' ' '
}
for arch in sm_80 sm_90 sm_100 sm_120; do
    short=$(cas "$arch" 16)
    word=$(cas "$arch" 32)
    printf '%-7s b16: %s| b32: %s\n' "$arch" "$short" "$word"
    [ "$short" = "LDG.E ATOMG.E.CAS.STRONG.GPU " ] && [ "$word" = "ATOMG.E.CAS.STRONG.GPU " ]
done
# The conditional branch behind the ATOMG goes back to a label before it.
cas sm_90 16 >/dev/null
"$bin/nvdisasm" -c "$work/k.cubin" | awk '
    /^\.L_x/ { label = $1; sub(":", "", label); place[label] = NR }
    /ATOMG/ { atomic = NR }
    /@P0 BRA/ { target = $0; sub(".*\\(", "", target); sub("\\).*", "", target); branch = NR }
    END { print "branch from line", branch, "back to", target, "at line", place[target]
          exit !(place[target] && place[target] < atomic && atomic < branch) }'

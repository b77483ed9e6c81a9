#!/usr/bin/env bash
# XLA compiles a collective of bfloat16 for the CPU to one of float32, even an all-gather, which only moves bytes: sizes of
# collectives that are read from such a program are twice those of the program's own type.
#
# Guess (written down before the run): a psum of bfloat16 compiles to an all-reduce of bf16 and an all_gather to an all-gather of
#   bf16, as on a GPU; only the arithmetic inside the reduction is done in float32.
# Seen: with eight CPU devices, all-reduce, reduce-scatter and all-gather of bf16 are all f32, with converts around them. float16 and
#   int8 keep their type. float8_e4m3fn becomes f16, in the all-gather too. No warning.
# Version: jax and jaxlib 0.10.2.
# Source: StableHLO, `all_gather` (the result has the element type of the operand).
# Who meets it: who takes the bytes of a layer's collectives from the compiled program on a machine without GPUs, to give them to a
#   simulator. `lower(...).as_text()`, before compilation, has the program's own types.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
XLA_FLAGS=--xla_force_host_platform_device_count=8 JAX_PLATFORMS=cpu "$work/venv/bin/python" - <<'PY'
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, shard_map
from jax.sharding import Mesh, PartitionSpec as P

print("jax", jax.__version__)
mesh = Mesh(np.array(jax.devices()), ("x",))
COLLECTIVES = {
    "all-reduce": (lambda x: lax.psum(x, "x"), P()),
    "reduce-scatter": (lambda x: lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True), P(None, "x")),
    "all-gather": (lambda x: lax.all_gather(x, "x"), P("x")),
}


def types(name, dtype):
    """Element type of the collective before and after compilation."""
    body, out = COLLECTIVES[name]
    lowered = jax.jit(shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=out)).lower(
        jax.ShapeDtypeStruct((8, 1024), dtype)
    )
    compiled = re.findall(r"= (\w+)\[[^=]* " + name + r"\(", lowered.compile().as_text())
    asked = name.replace("-", "_") in lowered.as_text()
    print(name, np.dtype(dtype).name, "->", compiled)
    assert asked and len(compiled) == 1, (name, asked, compiled)
    return compiled[0]


for name in COLLECTIVES:
    assert types(name, jnp.bfloat16) == "f32"
    assert types(name, jnp.float16) == "f16"
assert types("all-reduce", jnp.int8) == "s8"
assert types("all-gather", jnp.float8_e4m3fn) == "f16"
PY

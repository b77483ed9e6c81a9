#!/usr/bin/env bash
# scipy.io.mmwrite looks for symmetry by negating values: unsigned weights can come back negative, and an undirected graph of
# booleans is refused.
#
# Guess (written down before the run): unsigned integers are written as `integer` and booleans as `pattern`, the only fields of the
#   Matrix Market format that fit, and what is written is read back equal.
# Seen: a sparse matrix of uint8 with 1 at (1, 2) and 255 at (2, 1) is declared `skew-symmetric`, because -255 is 1 in 8 bits: half
#   of it is written, and mmread gives -255 at (1, 2). 1 and 2^32 - 1 in uint32 are declared so too, and mmread raises
#   OverflowError on the file. A matrix of booleans with one entry in both directions raises TypeError (booleans have no negative);
#   with one direction alone, or `symmetry="general"`, it is written, as `integer`. uint32 and uint64 are written as
#   `unsigned-integer`, which the format does not define.
# Version: scipy 1.17.1 with numpy 2.4.6.
# Source: Matrix Market exchange formats (NIST), banner; scipy.io.mmwrite, argument `symmetry`.
# Who meets it: who keeps weights or adjacency of a graph in small types and gives the file to another program. With
#   `symmetry="general"` every entry is written as it is.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q scipy==1.17.1 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import io
import numpy as np
import scipy
from scipy.io import mmread, mmwrite
from scipy.sparse import coo_array

print("scipy", scipy.__version__, "numpy", np.__version__)


def written(dtype, values, symmetry=None):
    """Text of a 2 by 2 matrix with these values at (1, 2) and (2, 1), and the values read back."""
    matrix = coo_array((np.array(values, dtype=dtype), ([0, 1], [1, 0])), shape=(2, 2))
    file = io.BytesIO()
    mmwrite(file, matrix, symmetry=symmetry)
    text = file.getvalue().decode()
    back = mmread(io.BytesIO(file.getvalue())).toarray()
    print(np.dtype(dtype).name, values, "->", text.splitlines()[0], "->", [int(back[0, 1]), int(back[1, 0])])
    return text.splitlines()[0].split()[3:], [int(back[0, 1]), int(back[1, 0])]


assert written(np.uint8, [1, 255]) == (["integer", "skew-symmetric"], [-255, 255])
try:
    written(np.uint32, [1, 2**32 - 1])
except OverflowError as error:
    print("uint32 [1, 2**32 - 1] -> mmread:", error)
else:
    raise SystemExit("mmread reads what mmwrite declares skew-symmetric in uint32")
assert written(np.uint8, [1, 255], "general") == (["integer", "general"], [1, 255])
assert written(np.uint64, [3, 4]) == (["unsigned-integer", "general"], [3, 4])
try:
    written(bool, [1, 1])
except TypeError as error:
    print("bool, both directions ->", error)
else:
    raise SystemExit("booleans in both directions are written")
assert written(bool, [1, 1], "general") == (["integer", "general"], [1, 1])
PY

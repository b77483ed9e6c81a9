#!/usr/bin/env bash
# NetworKit's writer for SNAP edge lists puts a header of another kind on the first line, which its own reader refuses, and drops
# the weights.
#
# Guess (written down before the run): what writeGraph(Format.SNAP) writes is read back by readGraph(Format.SNAP), with comments by
#   `#` as in the files of the SNAP collection, and weights are written or refused.
# Seen: the first line is `p NODES EDGES u u 0`, like the problem line of DIMACS, for directed and for weighted graphs alike;
#   readGraph raises OSError on it. A weighted graph is written as pairs without its weights, and nothing says so. METIS, the other text format, keeps weights: 0.5 as well, where METIS
#   has whole numbers alone.
# Version: networkit 11.3.
# Source: SNAP, Stanford Large Network Dataset Collection (text files with `#` comments); METIS 5 manual, section 4.1.1.
# Who meets it: who prepares a graph for another program: edge lists are refused at line 1 by readers of SNAP's files; the format
#   EdgeListTabZero is such a list without the header, and with weights.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q networkit==11.3
cd "$work"
venv/bin/python - <<'PY'
import networkit
from networkit import Format

print("networkit", networkit.__version__)
graph = networkit.Graph(5, weighted=True, directed=False)
for edge in [(0, 1, 2.0), (1, 2, 3.0), (2, 3, 0.5)]:
    graph.addEdge(*edge)


def written(format):
    networkit.writeGraph(graph, "graph", format)
    with open("graph") as file:
        lines = [line.split() for line in file]
    print(format.name, lines)
    return lines


assert written(Format.SNAP) == [["p", "5", "3", "u", "u", "0"], ["1", "0"], ["2", "1"], ["3", "2"]]
try:
    networkit.readGraph("graph", Format.SNAP)
except OSError as error:
    print("SNAP ->", error)
else:
    raise SystemExit("what is written as SNAP is read back")
directed = networkit.Graph(2, directed=True)
directed.addEdge(0, 1)
networkit.writeGraph(directed, "directed", Format.SNAP)
with open("directed") as file:
    assert file.readline().split() == ["p", "2", "1", "u", "u", "0"]
assert written(Format.EdgeListTabZero) == [["1", "0", "2"], ["2", "1", "3"], ["3", "2", "0.5"]]
assert written(Format.METIS)[3] == ["2", "3", "4", "0.5"]
PY

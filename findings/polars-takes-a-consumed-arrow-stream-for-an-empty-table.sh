#!/usr/bin/env bash
# A RecordBatchReader that has been read before gives an empty data frame in polars, with all columns and no error.
#
# Guess (written down before the run): polars and DuckDB both raise, as an Arrow stream can be read once.
# Seen: polars.DataFrame(reader) has all rows the first time and none the second: shape (0, 1) with the right column and type.
#   pyarrow's own read_all gives an empty table likewise. DuckDB raises InvalidInputException, and says that the reader is consumed.
#   An object whose __arrow_c_stream__ makes a new stream at each call is read any number of times by both.
# Version: polars 2.1.0, duckdb 2.0.1, pyarrow 26.0.1.
# Source: Arrow C stream interface (`get_next`: a released array marks the end); Arrow PyCapsule interface.
# Who meets it: who passes results of a simulator or database on as a stream and looks at them twice: sums and means of nothing
#   follow without a warning.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q polars==2.1.0 duckdb==2.0.1 pyarrow==26.0.1
"$work/venv/bin/python" - <<'PY'
import duckdb
import polars
import pyarrow

print("polars", polars.__version__, "duckdb", duckdb.__version__, "pyarrow", pyarrow.__version__)
table = pyarrow.table({"bytes": [1, 2, 3]})


def reader():
    return pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches())


class Again:
    """A new stream at each call."""

    def __arrow_c_stream__(self, requested_schema=None):
        return table.__arrow_c_stream__(requested_schema)


stream = reader()
shapes = [polars.DataFrame(stream).shape for _ in range(2)]
print("polars", shapes)
assert shapes == [(3, 1), (0, 1)]

stream = reader()
assert [stream.read_all().num_rows for _ in range(2)] == [3, 0]

stream = reader()
counts = [duckdb.sql("select count(*) from stream").fetchall()]
try:
    duckdb.sql("select count(*) from stream").fetchall()
except duckdb.InvalidInputException as error:
    print("duckdb", counts, "->", error)
else:
    raise SystemExit("DuckDB reads a consumed reader")

again = Again()
assert [polars.DataFrame(again).shape for _ in range(2)] == [(3, 1), (3, 1)]
assert [duckdb.sql("select count(*) from again").fetchall() for _ in range(2)] == [[(3,)], [(3,)]]
PY

#!/usr/bin/env bash
# A sum of integers in DuckDB, also a running one, becomes a column of doubles in Parquet: addresses above 2^53 change by a few bytes.
#
# Guess (written down before the run): sum(BIGINT) is written as INT64 or DECIMAL(38, 0), and an address made by a running sum of
#   sizes is exact; if its type fits nothing that Parquet has, COPY says so.
# Seen: the sum is HUGEINT, of 128 bits, and COPY writes HUGEINT as DOUBLE without a word: 2^53 + 1 + 128 is read back as 2^53 + 128.
#   A product with a literal and count(*) stay integers. A cast (`::UBIGINT`) before the COPY keeps every bit.
# Version: duckdb 2.0.1, read back by pyarrow 26.0.1.
# Source: DuckDB, numeric types and aggregate functions (`sum` of integers returns HUGEINT); Parquet, logical types.
# Who meets it: who lays out arrays of a trace in SQL, an address as the sum of the sizes before it: addresses of 48 bits survive,
#   tagged addresses, keys and hashes do not, and a reader that wants integers refuses the column.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q duckdb==2.0.1 pyarrow==26.0.1
cd "$work"
venv/bin/python - <<'PY'
import duckdb
import pyarrow.parquet as parquet

print("duckdb", duckdb.__version__)
BASE = 2**53 + 1
duckdb.execute("create table sizes as select number, 128::BIGINT as bytes from range(3) rows(number)")
duckdb.execute(
    f"""copy (select {BASE} + sum(bytes) over (order by number) as address,
                     ({BASE} + sum(bytes) over (order by number))::UBIGINT as kept,
                     count(*) over () as rows
              from sizes) to 'rows.parquet'"""
)
table = parquet.read_table("rows.parquet")
types = {field.name: str(field.type) for field in table.schema}
print(types, table["address"].to_pylist(), table["kept"].to_pylist())
assert types == {"address": "double", "kept": "uint64", "rows": "int64"}
assert table["kept"].to_pylist() == [BASE + 128, BASE + 256, BASE + 384]
assert all(int(got) == want - 1 for got, want in zip(table["address"].to_pylist(), table["kept"].to_pylist()))
PY

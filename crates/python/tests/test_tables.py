"""Tables go to other libraries through the Arrow C interface."""

import pytest
import tombolo

pyarrow = pytest.importorskip("pyarrow")

ROWS = [
    {"name": "a", "count": 1, "big": 2**63 + 5, "share": 0.5, "on": True, "l2": {"hits": 3}, "mixed": 1, "list": [1, 2]},
    {"name": None, "count": -2, "big": 1, "share": 1, "on": False, "l2": {"hits": 4}, "mixed": "x", "late": 7.0},
]
TYPES = dict(name="string", count="int64", big="uint64", share="double", on="bool", mixed="string", list="string", late="double")


def test_columns_have_types_and_nulls():
    table = pyarrow.table(tombolo.Table(ROWS))
    assert {name: str(table.schema.field(name).type) for name in TYPES} == TYPES
    assert table.column("l2.hits").to_pylist() == [3, 4]
    assert table.column("big").to_pylist() == [2**63 + 5, 1]
    assert table.column("mixed").to_pylist() == ["1", "x"]
    assert table.column("name").to_pylist() == ["a", None]
    assert table.column("late").to_pylist() == [None, 7.0]
    assert table.column("list").to_pylist() == ["[1, 2]", None]
    assert pyarrow.schema(tombolo.Table(ROWS)) == table.schema
    assert pyarrow.table(tombolo.Table([])).num_rows == 0


def test_the_links_of_a_run_are_the_same_in_every_library(small):
    names = [row["name"] for row in small.to_dict()["links"]]
    assert small.links["name"] == names and len(small.links) == len(names)
    assert small.links.to_arrow().column("name").to_pylist() == names
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(small.links)["bytes"].to_list() == small.links["bytes"]
    pandas = pytest.importorskip("pandas")
    assert list(small.links.to_pandas()["name"]) == names
    assert isinstance(small.links.to_pandas(), pandas.DataFrame)


def test_duckdb_reads_a_table(small):
    duckdb = pytest.importorskip("duckdb")
    links = small.links
    total = duckdb.sql("select sum(bytes) from links").fetchall()[0][0]
    assert total == sum(links["bytes"])


def test_rows_columns_and_slices(small):
    links = small.links
    assert links[0].name == links["name"][0]
    assert [row.name for row in links[1:3]] == links["name"][1:3]
    with pytest.raises(KeyError, match="byte: not one of name, bytes"):
        links["byte"]
    assert "24 rows" in repr(links) and "<th>utilization</th>" in links._repr_html_()

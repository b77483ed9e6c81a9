"""Results: the JSON documents of the command line as objects."""

from __future__ import annotations

import csv
import html
import io
import json
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union, overload

from . import _native

_SHOWN = 12
"""Rows that a notebook shows of a table."""


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Document(value)
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return Table(value)
    return value


class Document(Mapping[str, Any]):
    """An object of a JSON document. A key is read as an attribute or as an item: `run.time.region_s`, `run["time"]`.

    Inner objects are documents, lists of objects are tables. Units are part of the keys: `_s` seconds, `_bytes` bytes,
    `_pj` picojoules.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, key: str) -> Any:
        if key not in self._values:
            raise KeyError(f"{key}: not one of {', '.join(self._values)}")
        return _wrapped(self._values[key])

    def __getattr__(self, key: str) -> Any:
        values = self.__dict__.get("_values", {})
        if key not in values:
            raise AttributeError(f"{key}: not one of {', '.join(values)}")
        return _wrapped(values[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> List[str]:
        return sorted({*super().__dir__(), *self._values})

    def to_dict(self) -> Dict[str, Any]:
        """The object as plain dicts and lists."""
        return self._values

    def to_json(self, indent: Optional[int] = 2) -> str:
        """The object as JSON text."""
        return json.dumps(self._values, indent=indent)

    def __repr__(self) -> str:
        pairs = ", ".join(f"{key}={_brief(value)}" for key, value in self._values.items())
        return f"{type(self).__name__}({pairs})"

    def _repr_html_(self) -> str:
        return _rows_html([(key, _brief(value)) for key, value in self._values.items()])


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{len(value)} keys}}"
    if isinstance(value, list):
        return f"[{len(value)}]"
    return repr(value)


def _cell(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
    return html.escape(text)


def _rows_html(rows: Sequence[Sequence[Any]], head: Sequence[str] = ()) -> str:
    heading = "<tr>" + "".join(f"<th>{html.escape(name)}</th>" for name in head) + "</tr>" if head else ""
    body = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{heading}{body}</table>"


class Table(Sequence[Document]):
    """Rows with named columns, one row an object of a JSON list.

    `table[0]` is a row, `table["bytes"]` a column as a list with a value a row (None where the row has none). Columns
    of inner objects have dotted names. pandas, polars, pyarrow and duckdb read a table through the Arrow C stream
    interface.
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows: List[Dict[str, Any]] = [dict(row) for row in rows]
        self._flat: Optional[Dict[str, List[Any]]] = None

    @overload
    def __getitem__(self, key: int) -> Document: ...

    @overload
    def __getitem__(self, key: slice) -> "Table": ...

    @overload
    def __getitem__(self, key: str) -> List[Any]: ...

    def __getitem__(self, key: Union[int, slice, str]) -> Any:
        if isinstance(key, str):
            columns = self._columns()
            if key not in columns:
                raise KeyError(f"{key}: not one of {', '.join(columns)}")
            return columns[key]
        if isinstance(key, slice):
            return Table(self._rows[key])
        return Document(self._rows[key])

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"Table({len(self)} rows: {', '.join(self.columns)})"

    @property
    def columns(self) -> List[str]:
        """Names of the columns."""
        return list(self._columns())

    def to_list(self) -> List[Dict[str, Any]]:
        """The rows as plain dicts."""
        return self._rows

    def to_arrow(self) -> Any:
        """The table as a `pyarrow.Table`."""
        import pyarrow

        return pyarrow.table(self)

    def to_polars(self) -> Any:
        """The table as a `polars.DataFrame`."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> Any:
        """The table as a `pandas.DataFrame`."""
        import pandas

        return pandas.DataFrame(self._columns())

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        return self._native().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._native().__arrow_c_schema__()

    def _native(self) -> _native.Columns:
        return _native.Columns(list(self._columns().items()))

    def _columns(self) -> Dict[str, List[Any]]:
        if self._flat is None:
            columns: Dict[str, List[Any]] = {}
            for number, row in enumerate(self._rows):
                for name, value in _leaves(row, ""):
                    column = columns.setdefault(name, [])
                    column.extend([None] * (number - len(column)))
                    column.append(value)
            for column in columns.values():
                column.extend([None] * (len(self._rows) - len(column)))
            self._flat = columns
        return self._flat

    def _repr_html_(self) -> str:
        columns = self._columns()
        rows = list(zip(*(column[:_SHOWN] for column in columns.values())))
        more = f"<p>{len(self)} rows</p>" if len(self) > _SHOWN else ""
        return _rows_html(rows, list(columns)) + more


def _leaves(row: Mapping[str, Any], before: str) -> Iterator[Tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{before}{key}.")
        elif isinstance(value, (list, dict)):
            yield before + key, json.dumps(value)
        else:
            yield before + key, value


class Result(Document):
    """The document of a command.

    `status`: 0, or 1 if the answer is "no". `messages`: the lines that the command line prints on standard error.
    """

    status: int
    messages: List[str]

    def __init__(self, values: Mapping[str, Any], status: int = 0, messages: Sequence[str] = ()) -> None:
        super().__init__(values)
        self.status = status
        self.messages = list(messages)

    def plot(self, ax: Any = None) -> Any:
        """Draws the result with matplotlib, in the look of the project's pages. Returns the axes."""
        from . import _plot

        return _plot.draw(self, ax)

    def _summary(self) -> List[Tuple[str, Any]]:
        """Names and values of a notebook's summary."""
        return [(key, value) for key, value in self._values.items() if not isinstance(value, (dict, list))]

    def _repr_html_(self) -> str:
        return _rows_html(self._summary())


class Run(Result):
    """A run: `time`, `cycles`, `l2`, `links`, `gpus`, `modules`, `kernels`, `stalls`, `digest` and more.

    `links`, `gpus`, `modules` and `kernels` are tables with a row each. With `check=True`, `check.violations` counts
    loads that the memory model forbids.
    """

    def _summary(self) -> List[Tuple[str, Any]]:
        time, l2 = self._values["time"], self._values["l2"]
        busiest = max(self._values["links"], key=lambda link: link["utilization"], default=None)
        rows = [(key, self._values[key]) for key in ("machine", "design", "workload", "scale")]
        rows += [("region", f"{time['region_s'] * 1e3:.4g} ms"), ("whole", f"{time['whole_s'] * 1e3:.4g} ms")]
        rows += [("L2 hits", f"{l2['hits']} of {l2['loads']} loads")]
        rows += [("between GPUs", f"{self._values['inter_gpu_bytes']} bytes")]
        if busiest is not None:
            rows += [("busiest link", f"{busiest['name']}, {busiest['utilization']:.1%} of the time")]
        if "check" in self._values:
            rows += [("violations", self._values["check"]["violations"])]
        return rows + [("digest", self._values["digest"])]


class Comparison(Result):
    """A comparison: `speedups` by workload and design, `geometric_means` by design, `runs` with a row a run."""

    def _repr_html_(self) -> str:
        designs = self._values["designs"]
        speedups = self._values["speedups"]
        rows = [[name, *(speedups.get(name, {}).get(design) for design in designs)] for name in self._values["workloads"]]
        means = self._values.get("geometric_means", {})
        rows.append(["geometric mean", *(means.get(design) for design in designs)])
        return _rows_html(rows, [f"speed-up over {self._values['baseline']}", *designs])


class Explanation(Result):
    """Stalls of each design (`designs`) and the largest `differences` to the first design."""

    def _repr_html_(self) -> str:
        rows = [(row["design"], row["text"]) for row in self._values["differences"]]
        return _rows_html(rows, [f"against {self._values['designs'][0]['design']}", "difference"])


class Sharing(Result):
    """Policies of memory sharing between GPUs, fastest first (`ranking`), with `advice` for each array."""

    def _repr_html_(self) -> str:
        rows = [(row["design"], row["time_s"], row["speedup"]) for row in self._values["ranking"]]
        return _rows_html(rows, ["design", "time in s", "speed-up over one GPU"])


class Verification(Result):
    """Verdicts of the model checker: a row a design in `designs`, each with its `tests`; `violations` counts."""

    def verdicts(self) -> Dict[str, Dict[str, int]]:
        """Number of tests by design and verdict."""
        counts: Dict[str, Dict[str, int]] = {}
        for design in self._values["designs"]:
            of_design = counts.setdefault(design["design"], {})
            for test in design["tests"]:
                of_design[test["verdict"]] = of_design.get(test["verdict"], 0) + 1
        return counts

    def _repr_html_(self) -> str:
        if "designs" not in self._values:
            return super()._repr_html_()
        rows = [(design, verdict, count) for design, all in self.verdicts().items() for verdict, count in all.items()]
        return _rows_html(rows, ["design", "verdict", "tests"])


class Validation(Result):
    """Simulated beside measured times: a row a measurement in `rows` (milliseconds), errors in `summary`; or `probes`."""

    def _repr_html_(self) -> str:
        return Table(self._values["rows" if "rows" in self._values else "probes"])._repr_html_()


class Sweep(Result):
    """A sweep: `figures` as drawn on its page, and `points` with a row a run. `folder` holds tables and page."""

    folder: str
    drawn: int

    def __init__(
        self,
        values: Mapping[str, Any],
        status: int = 0,
        messages: Sequence[str] = (),
        folder: str = "",
        points: str = "",
    ) -> None:
        super().__init__(values, status, messages)
        self.folder = folder
        self.drawn = 0
        self._points = points

    def plot(self, ax: Any = None, figure: int = 0) -> Any:
        """Draws `figures[figure]` with matplotlib. Returns the axes."""
        self.drawn = figure
        return super().plot(ax)

    @property
    def points(self) -> Table:
        """All runs: labels, settings (`set.KEY` in base units, `set.KEY.text` as spelled) and counters."""
        return Table(_rows_of_csv(self._points))

    def to_xarray(self) -> Any:
        """The runs as an `xarray.Dataset`.

        Dimensions: `machine`, `design`, `workload`, `scale` and `seed` where they have several values, and each swept
        setting, with its values in base units (bytes, bytes per second, seconds, hertz). Variables: times in seconds,
        counters, `speedup`. Runs without the swept settings, such as baselines, are left out.
        """
        import numpy
        import xarray

        rows = self.points.to_list()
        swept = [name for name in self.points.columns if name.startswith("set.") and not name.endswith(".text")]
        rows = [row for row in rows if all(row[name] is not None for name in swept)]
        labels = ["machine", "design", "workload", "scale", "seed"]
        values = {name: list(dict.fromkeys(row[name] for row in rows)) for name in labels + swept}
        dims = [name for name in labels if len(values[name]) > 1 or name == "design"] + swept
        shape = tuple(len(values[name]) for name in dims)
        places = [tuple(values[name].index(row[name]) for name in dims) for row in rows]
        left_out = {*labels, *swept, "key", "pass", "model", "baseline", "baseline_key", "error"}
        data: Dict[str, Any] = {}
        for name in self.points.columns:
            column = [row[name] for row in rows]
            if name in left_out or name.endswith(".text") or all(value is None for value in column):
                continue
            texts = any(isinstance(value, str) for value in column)
            cells = numpy.full(shape, None if texts else numpy.nan, dtype=object if texts else float)
            for place, value in zip(places, column):
                if value is not None:
                    cells[place] = value
            data[name] = (dims, cells)
        coordinates: Dict[str, Any] = {name: values[name] for name in dims}
        for name in swept:
            spelled = {row[name]: row.get(f"{name}.text") for row in rows}
            coordinates[f"{name}.text"] = (name, [str(spelled[value]) for value in values[name]])
        attributes = {name: values[name][0] for name in labels if name not in dims and values[name]}
        return xarray.Dataset(data, coords=coordinates, attrs=attributes)

    def _repr_html_(self) -> str:
        figure = (self._values.get("figures") or [{"columns": [], "rows": []}])[0]
        rows = [[row["label"], *row["values"]] for row in figure["rows"]]
        return f"<p>{html.escape(figure.get('title', ''))}</p>" + _rows_html(rows, figure["columns"])


def _rows_of_csv(text: str) -> List[Dict[str, Any]]:
    """Rows of a table of results: a column is whole numbers, numbers or text; an empty field is None."""
    records = list(csv.reader(io.StringIO(text)))
    if not records:
        return []
    head, body = records[0], records[1:]
    columns = [_typed([record[place] for record in body]) for place in range(len(head))]
    return [dict(zip(head, row)) for row in zip(*columns)]


def _typed(fields: List[str]) -> List[Any]:
    for kind in (int, float):
        try:
            return [kind(field) if field else None for field in fields]
        except ValueError:
            continue
    return [field or None for field in fields]

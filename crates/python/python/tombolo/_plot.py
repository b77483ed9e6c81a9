"""Drawings with matplotlib, in the look of the project's pages."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Type

from ._result import Comparison, Explanation, Result, Run, Sharing, Sweep, Validation, Verification

COLOURS = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#6b7280", "#d8c800"]
"""Okabe and Ito's palette, in the order of the pages: distinguishable with any colour vision."""
_HATCHES = ["", "//", "..", "--", "\\\\", "xx", "||", "++"]
_MARKS = "os^Dv<>P"
_STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.edgecolor": "#9ca3af",
    "grid.color": "#e5e7eb",
    "font.size": 10,
    "figure.figsize": (7.0, 3.6),
    "hatch.linewidth": 0.5,
}


def draw(result: Result, ax: Any) -> Any:
    """Draws a result on axes of its own, or on `ax`."""
    import matplotlib.pyplot

    drawing = next((drawing for kind, drawing in _DRAWINGS.items() if isinstance(result, kind)), None)
    if drawing is None:
        raise TypeError(f"{type(result).__name__}: no drawing")
    with matplotlib.pyplot.rc_context(_STYLE):  # type: ignore[arg-type]
        if ax is None:
            figure, ax = matplotlib.pyplot.subplots(layout="constrained")
            matplotlib.pyplot.close(figure)
        drawing(result, ax)
    return ax


def _bars(ax: Any, groups: Sequence[str], series: Dict[str, List[Optional[float]]]) -> None:
    width = 0.8 / max(len(series), 1)
    for number, (name, values) in enumerate(series.items()):
        at = [group + (number - (len(series) - 1) / 2) * width for group in range(len(groups))]
        heights = [0.0 if value is None else value for value in values]
        ax.bar(at, heights, width, label=name, **_look(number))
    ax.set_xticks(range(len(groups)), groups, rotation=30 if len(groups) > 3 else 0, ha="right" if len(groups) > 3 else "center")
    ax.grid(axis="x", visible=False)
    ax.legend(frameon=False, fontsize=8, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _look(number: int) -> Dict[str, Any]:
    look = number % len(COLOURS)
    return {"color": COLOURS[look], "hatch": _HATCHES[(number + number // 8) % 8], "edgecolor": "white", "linewidth": 0.3}


def _stacks(ax: Any, names: Sequence[str], stacks: Sequence[Dict[str, float]]) -> None:
    """Horizontal bars of shares: the classes of warp-slot cycles."""
    classes = [name for name in stacks[0] if name not in ("warp_slot_cycles", "queued")]
    classes = [name for name in classes if any(isinstance(stack.get(name), (int, float)) and stack[name] for stack in stacks)]
    start = [0.0] * len(names)
    for number, name in enumerate(classes):
        shares = [stack.get(name, 0) / (stack["warp_slot_cycles"] or 1) for stack in stacks]
        ax.barh(range(len(names)), shares, left=start, label=name.replace("_", " "), **_look(number))
        start = [begin + share for begin, share in zip(start, shares)]
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlim(0, 1)
    ax.set_xlabel("share of warp-slot cycles")
    ax.grid(axis="y", visible=False)
    ax.legend(frameon=False, fontsize=7, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _run(run: Run, ax: Any) -> None:
    values = run.to_dict()
    _stacks(ax, [f"{values['workload']}\n{values['design']}"], [values["stalls"]])


def _explanation(explanation: Explanation, ax: Any) -> None:
    designs = explanation.to_dict()["designs"]
    _stacks(ax, [design["design"] for design in designs], [design["stalls"] for design in designs])


def _comparison(comparison: Comparison, ax: Any) -> None:
    values = comparison.to_dict()
    speedups, means = values["speedups"], values.get("geometric_means", {})
    groups = [*values["workloads"], "geometric mean"]
    series = {
        design: [*(speedups.get(name, {}).get(design) for name in values["workloads"]), means.get(design)]
        for design in values["designs"]
    }
    _bars(ax, [name.split(",")[0] for name in groups], series)
    ax.axhline(1.0, color="#6b7280", linewidth=0.8)
    ax.set_ylabel(f"speed-up over {values['baseline']}")


def _sharing(sharing: Sharing, ax: Any) -> None:
    ranking = sharing.to_dict()["ranking"]
    names = [row["design"] + (" (bound)" if row["bound"] else "") for row in ranking]
    ax.barh(range(len(names)), [row["speedup"] for row in ranking], **_look(0))
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.axvline(1.0, color="#6b7280", linewidth=0.8)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("speed-up over one GPU")


def _verification(verification: Verification, ax: Any) -> None:
    counts = verification.verdicts()
    verdicts = list(dict.fromkeys(verdict for of_design in counts.values() for verdict in of_design))
    series: Dict[str, List[Optional[float]]] = {
        verdict: [float(of_design.get(verdict, 0)) for of_design in counts.values()] for verdict in verdicts
    }
    _bars(ax, list(counts), series)
    ax.set_ylabel("tests")


def _validation(validation: Validation, ax: Any) -> None:
    values = validation.to_dict()
    rows = values.get("rows") or values["probes"]
    measured, simulated = ("measured_ms", "simulated_ms") if "rows" in values else ("published", "simulated")
    names = list(dict.fromkeys(row.get("benchmark", row.get("machine")) for row in rows))
    for number, name in enumerate(names):
        of_name = [row for row in rows if row.get("benchmark", row.get("machine")) == name]
        looks = {"color": COLOURS[number % 8], "marker": _MARKS[(number + number // 8) % 8], "s": 18, "label": name}
        ax.scatter([row[measured] for row in of_name], [row[simulated] for row in of_name], **looks)
    ends = [min(row[measured] for row in rows), max(row[measured] for row in rows)]
    ax.plot(ends, ends, color="#6b7280", linewidth=0.8)
    ax.set(xscale="log", yscale="log", xlabel=measured.replace("_", " "), ylabel=simulated.replace("_", " "))
    ax.legend(frameon=False, fontsize=7, ncols=2)


def _sweep(sweep: Sweep, ax: Any) -> None:
    figures = sweep.to_dict()["figures"]
    if not 0 <= sweep.drawn < len(figures):
        raise ValueError(f"figure: expected a number below {len(figures)}, found {sweep.drawn}")
    figure = figures[sweep.drawn]
    chart, rows, names = figure["chart"], figure["rows"], figure["columns"][1:]
    rows = [row for row in rows if not row["summary"]]
    labels = [row["label"] for row in rows]
    ax.set_title(figure["title"], fontsize=9, wrap=True)
    if chart["kind"] == "heat":
        cells = [[float("nan") if value is None else value for value in row["values"]] for row in rows]
        image = ax.imshow(cells, aspect="auto", cmap="cividis")
        ax.set_xticks(range(len(names)), names)
        ax.set_yticks(range(len(labels)), labels)
        ax.grid(visible=False)
        ax.figure.colorbar(image, ax=ax, label=chart["y"])
    elif chart["kind"] == "lines":
        for number, name in enumerate(names):
            values = [row["values"][number] for row in rows]
            looks = {"color": COLOURS[number % 8], "marker": _MARKS[(number + number // 8) % 8]}
            ax.plot(range(len(labels)), [float("nan") if v is None else v for v in values], label=name, **looks)
        ax.set_xticks(range(len(labels)), labels)
        ax.legend(title=chart.get("series"), frameon=False, fontsize=8)
        ax.set_ylabel(chart["y"])
    else:
        _bars(ax, labels, {name: [row["values"][number] for row in rows] for number, name in enumerate(names)})
        ax.set_ylabel(chart["y"])
    ax.set_xlabel(chart.get("series" if chart["kind"] == "heat" else "x") or "")


_DRAWINGS: Dict[Type[Result], Callable[[Any, Any], None]] = {
    Run: _run,
    Comparison: _comparison,
    Explanation: _explanation,
    Sharing: _sharing,
    Verification: _verification,
    Validation: _validation,
    Sweep: _sweep,
}

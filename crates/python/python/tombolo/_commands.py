"""Commands of the command line as functions. Keyword arguments have the names of its options."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Dict, List, Mapping, Optional, Sequence, Type, TypeVar, Union

from . import _native
from ._errors import Error, error_of, warn
from ._progress import Bar, Progress, bar
from ._result import Comparison, Explanation, Result, Run, Sharing, Sweep, Validation, Verification
from ._words import (
    Described,
    Descriptions,
    Scale,
    Settings,
    Workload,
    option_words,
    setting_words,
    several,
    vary_words,
    workload_word,
)

Path = Union[str, "os.PathLike[str]"]
R = TypeVar("R", bound=Result)


def run(
    machine: Described,
    design: Described,
    workload: Workload,
    *,
    scale: Optional[Scale] = None,
    set: Optional[Settings] = None,
    time: Optional[str] = None,
    check: bool = False,
    latency: bool = False,
    sample: bool = False,
    observe: Optional[Sequence[str]] = None,
    timeline: Optional[Path] = None,
    boundaries: Optional[Path] = None,
    threads: Optional[int] = None,
    out: Optional[Path] = None,
    progress: Progress = None,
) -> Run:
    """Runs a workload on a machine under a design.

    machine, design: a name, the path of a TOML file, or a dict with its keys. workload: a name with parameters
    ("triad,elements=4096"), a `Program`, or the path of a trace.

    scale: the fraction of the machine and of the input, "1/16" or 0.25. set: replaced values, {"l2.bytes": "6MB"}.
    check: checks each load against the memory model (`check.violations`). latency: measures load latencies. sample:
    runs samples. timeline, boundaries, out: files to write. threads: the result is equal for each number.

    The result has the keys of `tombolo run --json`. Raises `Error`.
    """
    options: Dict[str, Any] = dict(scale=scale, time=time, check=check, latency=latency, sample=sample, observe=observe)
    options.update(timeline=timeline, boundaries=boundaries, threads=threads, out=out)
    with _Call("run", progress) as call:
        call.described(machine, "machine").described(design, "design").workload(workload).set(set)
        return call.result(Run, options)


def compare(
    machine: Described,
    designs: Union[Described, Sequence[Described]],
    workloads: Union[Workload, Sequence[Workload]],
    *,
    baseline: Optional[str] = None,
    scale: Optional[Scale] = None,
    set: Optional[Settings] = None,
    time: Optional[str] = None,
    sample: bool = False,
    kernels: bool = False,
    timeline: Optional[Path] = None,
    threads: Optional[int] = None,
    out: Optional[Path] = None,
    progress: Progress = None,
) -> Comparison:
    """Runs workloads under several designs, against a baseline: the first design, unless `baseline` names another.

    `speedups[workload][design]`, `geometric_means[design]`, and `runs` with a row a run. time: the compared time:
    "region" (the default), "kernels", "ctas", "drained" or "whole". out: a JSON file, or a folder whose finished
    points are reused. Raises `Error`; its `result` holds the runs that have a result.
    """
    options: Dict[str, Any] = dict(baseline=baseline, scale=scale, time=time, sample=sample, kernels=kernels, timeline=timeline)
    options.update(threads=threads, out=out)
    with _Call("compare", progress) as call:
        call.described(machine, "machine").designs(designs).workload(workloads, many=True).set(set)
        return call.result(Comparison, options)


def sweep(
    machine: Union[Described, None] = None,
    designs: Union[None, Described, Sequence[Described]] = None,
    workloads: Union[None, Workload, Sequence[Workload]] = None,
    vary: Optional[Mapping[str, Sequence[Any]]] = None,
    *,
    spec: Optional[Path] = None,
    baseline: Optional[str] = None,
    scale: Optional[Scale] = None,
    set: Optional[Settings] = None,
    time: Optional[str] = None,
    chart: Optional[str] = None,
    sample: bool = False,
    robust: bool = False,
    strict: bool = False,
    threads: Optional[int] = None,
    out: Optional[Path] = None,
    progress: Progress = None,
) -> Sweep:
    """Sweeps settings: `vary={"l2.bytes": ["3MB", "6MB"]}`; or runs an experiment file, `spec`.

    Each key of `vary` is an axis. `points` has a row a run, `to_xarray()` the same on axes. scale: "quick" (the
    default), "paper", or a fraction. chart: "lines" or "heat". out: the folder for points, tables and page; finished
    points are reused, also after Ctrl-C. Without it: tombolo-NAME in the current folder. Raises `Error`.
    """
    options: Dict[str, Any] = dict(baseline=baseline, scale=scale, time=time, chart=chart, sample=sample, robust=robust)
    options.update(strict=strict, threads=threads, out=out)
    with _Call("sweep", progress) as call:
        if spec is not None:
            given = dict(machine=machine, designs=designs, workloads=workloads, vary=vary)
            named = [name for name, value in given.items() if value is not None]
            if named:
                raise TypeError(f"spec: an experiment file takes the place of {', '.join(named)}")
            call.words.append(os.fspath(spec))
            name = os.path.splitext(os.path.basename(os.fspath(spec)))[0]
        else:
            for argument, value in dict(machine=machine, designs=designs, workloads=workloads, vary=vary).items():
                if value is None:
                    raise TypeError(f"sweep() needs {argument}, or an experiment file, spec")
            call.described(machine, "machine").designs(designs).workload(workloads, many=True)
            call.words += vary_words(vary)
            name = "sweep"
        call.set(set)
        result = call.result(Sweep, options)
        result.folder = os.fspath(out) if out is not None else f"tombolo-{name}"
        try:
            with open(os.path.join(result.folder, "results.csv"), encoding="utf-8", newline="") as file:
                result._points = file.read()
        except FileNotFoundError:
            # An experiment of hardware costs alone has no runs.
            pass
        return result


def explain(
    machine: Described,
    designs: Sequence[Described],
    workload: Workload,
    *,
    latency: bool = False,
    scale: Optional[Scale] = None,
    set: Optional[Settings] = None,
    time: Optional[str] = None,
    threads: Optional[int] = None,
    out: Optional[Path] = None,
    progress: Progress = None,
) -> Explanation:
    """Runs a workload under several designs: warp stalls by class, and what differs most from the first design.

    `designs[i].stalls` counts warp-slot cycles; `differences` has a row each, with its `text`. Raises `Error`.
    """
    options: Dict[str, Any] = dict(latency=latency, scale=scale, time=time, threads=threads, out=out)
    with _Call("explain", progress) as call:
        call.described(machine, "machine").designs(designs).workload(workload).set(set)
        return call.result(Explanation, options)


def share(
    machine: Described,
    workload: Workload,
    *,
    scale: Optional[Scale] = None,
    set: Optional[Settings] = None,
    threads: Optional[int] = None,
    out: Optional[Path] = None,
    progress: Progress = None,
) -> Sharing:
    """Runs every policy of memory sharing between GPUs, ranks them (`ranking`), and gives `advice` for each array.

    Raises `Error`.
    """
    with _Call("share", progress) as call:
        call.described(machine, "machine").workload(workload).set(set)
        return call.result(Sharing, dict(scale=scale, threads=threads, out=out))


def check(
    designs: Union[None, Described, Sequence[Described]] = None,
    *,
    litmus: Union[None, Path, Sequence[Path]] = None,
    model: Union[None, Path, Sequence[Path]] = None,
    observed: Optional[Path] = None,
    random: Optional[int] = None,
    seed: Optional[int] = None,
    timed: Union[bool, int] = False,
    mutants: Union[bool, str] = False,
    partial: bool = False,
    threads: Optional[int] = None,
    out: Optional[Path] = None,
    progress: Progress = None,
) -> Verification:
    """Checks designs (all that ship, by default) against the memory model, exhaustively, on small programs.

    litmus: tests, or folders of them. random: a number of random programs. timed: attacks the timing model, with a number
    of runs. mutants: breaks the protocol's rules; "all" with all tests. model: what the axioms allow for these tests.
    `violations` counts; `status` is 1 if there are any. Raises `Error`; with partial=True, not for unreadable tests.
    """
    options: Dict[str, Any] = dict(
        litmus=None if litmus is None else several(litmus, "litmus"),
        model=None if model is None else several(model, "model"),
        observed=observed,
        random=random,
        seed=seed,
        timed=timed if timed is not False else None,
        mutants=mutants or None,
        partial=partial,
        threads=threads,
        out=out,
    )
    with _Call("check", progress) as call:
        for design in [] if designs is None else several(designs, "designs"):
            call.described(design, "design")
        return call.result(Verification, options)


def validate(
    machine: Optional[Described] = None,
    design: Optional[Described] = None,
    *,
    measured: Optional[Path] = None,
    benchmarks: Optional[Sequence[str]] = None,
    set: Optional[Settings] = None,
    whole: bool = False,
    probes: bool = False,
    threads: Optional[int] = None,
    out: Optional[Path] = None,
    progress: Progress = None,
) -> Validation:
    """Runs measured kernels and compares simulated with measured times, in milliseconds (`rows`, `summary`).

    machine: "mi300a" by default. measured: a CSV file of yours. benchmarks: names, or all. probes: latencies and
    bandwidths beside published values instead. Raises `Error`.
    """
    options: Dict[str, Any] = dict(measured=measured, whole=whole, probes=probes, threads=threads, out=out)
    if benchmarks is not None:
        options["benchmarks"] = ",".join(several(benchmarks, "benchmarks"))
    with _Call("validate", progress) as call:
        if machine is not None:
            call.described(machine, "machine")
        if design is not None:
            call.described(design, "design")
        call.set(set)
        return call.result(Validation, options)


class _Call:
    """A command while its words are collected."""

    def __init__(self, command: str, progress: Progress) -> None:
        self.words: List[str] = [command]
        self._bar = bar(progress)
        self._folder = tempfile.TemporaryDirectory(prefix="tombolo-")
        self._descriptions = Descriptions(self._folder.name)

    def __enter__(self) -> "_Call":
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()
        if isinstance(self._bar, Bar):
            self._bar.close()

    def described(self, value: Any, kind: str) -> "_Call":
        self.words.append(f"--{kind}={self._descriptions.word(value, kind)}")
        return self

    def designs(self, values: Any) -> "_Call":
        for value in several(values, "designs"):
            self.words.append(f"--designs={self._descriptions.word(value, 'design')}")
        return self

    def workload(self, values: Any, many: bool = False) -> "_Call":
        for value in several(values, "workloads") if many else [values]:
            self.words.append(f"--workload={workload_word(value, 'workloads' if many else 'workload')}")
        return self

    def set(self, settings: Optional[Settings]) -> "_Call":
        self.words += setting_words(settings)
        return self

    def result(self, kind: Type[R], options: Mapping[str, Any]) -> R:
        words = self.words + option_words(dict(options)) + ["--json"]
        try:
            status, output, messages = _native.execute(words, self._bar)
        except _native.Failure as failure:
            error = error_of(failure)
            error.args = (self._descriptions.without_folder(error.args[0]),)
            raise error from None
        result = kind(json.loads(output), status, messages)
        warn(messages)
        if status == 2:
            failures = [message[len("error: ") :] for message in messages if message.startswith("error: ")]
            failed = Error("\n".join(failures) or "a part of the command gave no result")
            failed.result = result
            raise failed
        return result

"""A fast, verified simulator for the memory systems of multi-GPU and multi-chiplet machines.

>>> import tombolo
>>> run = tombolo.run("hmg-4x4", "hmg", "triad,elements=65536", scale="1/16")
>>> run.time.region_s, run.digest
>>> run.links.to_polars()

Each function runs a command of the command line `tombolo` in this process, and returns its JSON document as an object:
same keys, same values, same digest. `docs/python.md` has the guide.
"""

from ._commands import check, compare, explain, run, share, sweep, validate
from ._errors import (
    ArgumentError,
    DescriptionError,
    Error,
    ExperimentError,
    FileError,
    Notice,
    ProgramError,
    RunError,
)
from ._lists import designs, experiments, machines, workloads
from ._program import Array, Program
from ._result import Comparison, Document, Explanation, Result, Run, Sharing, Sweep, Table, Validation, Verification
from ._words import workload

__all__ = [
    "ArgumentError",
    "Array",
    "Comparison",
    "DescriptionError",
    "Document",
    "Error",
    "ExperimentError",
    "Explanation",
    "FileError",
    "Notice",
    "Program",
    "ProgramError",
    "Result",
    "Run",
    "RunError",
    "Sharing",
    "Sweep",
    "Table",
    "Validation",
    "Verification",
    "check",
    "compare",
    "designs",
    "experiments",
    "explain",
    "machines",
    "run",
    "share",
    "sweep",
    "validate",
    "workload",
    "workloads",
]

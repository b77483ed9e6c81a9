"""What ships: machines, designs, workloads, experiments."""

from __future__ import annotations

import json

from . import _native
from ._result import Table


def _listed(what: str) -> Table:
    _, output, _ = _native.execute(["list", what, "--json"], None)
    return Table(json.loads(output))


def machines() -> Table:
    """The machines that ship: a row each, with `name` and `description`."""
    return _listed("machines")


def designs() -> Table:
    """The designs (memory systems) that ship: a row each, with `name` and `description`."""
    return _listed("designs")


def workloads() -> Table:
    """The workloads that ship: a row each, with `name`, `aliases`, `suite`, `description`, `source`, `parameters`."""
    return _listed("workloads")


def experiments() -> Table:
    """The experiments that ship: a row each, with `name` and `description`."""
    return _listed("experiments")

"""The package beside its sources: options, versions, types."""

import importlib.resources
import inspect
import re

import pytest
import tombolo
from conftest import ROOT

# Options without a keyword: what a function always does, what it names otherwise, what belongs to clusters, what prints.
OTHER = {
    "run": {"machine", "design", "workload", "trace", "json", "kernels", "help"},
    "compare": {"workload", "json", "help"},
    "sweep": {"workload", "json", "help", "engine", "jobs", "shard"},
    "explain": {"json", "help"},
    "share": {"trace", "json", "help"},
    "check": {"design", "json", "help"},
    "validate": {"json", "help"},
}


@pytest.mark.parametrize("command", OTHER)
def test_every_option_of_the_command_line_is_a_keyword(command):
    contract = (ROOT / "contract.txt").read_text()
    options = set(re.findall(rf"^tombolo {command} .*?--([a-z-]+)", contract, re.MULTILINE))
    parameters = set(inspect.signature(getattr(tombolo, command)).parameters)
    assert options - OTHER[command] <= {name.replace("_", "-") for name in parameters}
    assert options, "the contract lists the command"


@pytest.mark.parametrize("name", tombolo.__all__)
def test_every_public_name_is_documented(name):
    assert inspect.getdoc(getattr(tombolo, name))


def test_the_package_has_types():
    assert importlib.resources.files("tombolo").joinpath("py.typed").is_file()
    for command in OTHER:
        assert all(p.annotation is not p.empty for p in inspect.signature(getattr(tombolo, command)).parameters.values())


def test_locked_versions_are_those_of_the_workspace():
    def versions(path):
        return set(re.findall(r'name = "([^"]+)"\nversion = "([^"]+)"', (ROOT / path).read_text()))

    own, workspace = versions("crates/python/Cargo.lock"), versions("Cargo.lock")
    shared = {name for name, _ in workspace}
    assert {(name, version) for name, version in own if name in shared} <= workspace

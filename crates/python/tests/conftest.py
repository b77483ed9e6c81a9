"""What the tests share: a small machine and workload, and the command line to compare with."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SMALL = dict(machine="hmg-4x4", design="hmg", workload="triad,elements=65536,iterations=2", scale="1/32")


def binary():
    """The command line: `TOMBOLO_BINARY`, or what cargo has built here."""
    given = os.environ.get("TOMBOLO_BINARY")
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [target / profile / "tombolo" for profile in ("release", "debug")]
    found = [pathlib.Path(given)] if given else [path for path in built if path.exists()]
    return found[0] if found else shutil.which("tombolo")


@pytest.fixture
def command_line(tmp_path):
    """Runs the command line: status, document (None without one), standard error."""
    program = binary()
    if program is None:
        pytest.skip("needs the command line: cargo build, or TOMBOLO_BINARY")

    def run(*words):
        done = subprocess.run([program, *words], cwd=tmp_path, capture_output=True, text=True, timeout=600)
        return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr

    return run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def small():
    """A small run."""
    import tombolo

    return tombolo.run(**SMALL)

"""Exceptions: the errors of the command line, with its texts."""

from __future__ import annotations

import warnings
from typing import Dict, Iterable, Optional, Type

from . import _native


class Error(Exception):
    """A command gave no complete answer. Its text is the one that the command line prints behind `error:`.

    `result` holds the document if only a part of the command failed, such as one workload of a comparison.
    """

    result: Optional[object] = None


class ArgumentError(Error, ValueError):
    """An argument is missing, unknown, or contradicts another one."""


class DescriptionError(Error, ValueError):
    """A machine, a design, a setting or a scale is not accepted."""


class ProgramError(Error, ValueError):
    """A workload, a program, a trace or a litmus test is not accepted."""


class ExperimentError(Error, ValueError):
    """An experiment file is not accepted."""


class FileError(Error, OSError):
    """A file or folder cannot be read or written."""


class RunError(Error, RuntimeError):
    """A run gave no result."""


class Notice(UserWarning):
    """A warning of a run, such as a workload too large for the machine's memory."""


_KINDS: Dict[str, Type[Error]] = {
    "argument": ArgumentError,
    "description": DescriptionError,
    "program": ProgramError,
    "experiment": ExperimentError,
    "file": FileError,
    "run": RunError,
}


def error_of(failure: _native.Failure) -> Error:
    """The exception for a failure of the native half."""
    kind, message = failure.args
    return _KINDS.get(kind, Error)(message)


def warn(messages: Iterable[str]) -> None:
    """Raises the warnings among a command's messages as Python warnings."""
    for message in messages:
        if message.startswith("warning: "):
            warnings.warn(message[len("warning: ") :], Notice, stacklevel=4)

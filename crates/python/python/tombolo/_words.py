"""From Python values to the words of a command line."""

from __future__ import annotations

import fractions
import json
import os
import re
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ._program import Program

Described = Union[str, "os.PathLike[str]", Mapping[str, Any]]
"""A machine or a design: a name, a path, or a dict with the keys of a TOML file."""
Workload = Union[str, "os.PathLike[str]", Program]
"""A workload: a name with parameters, a trace's path, or a program."""
Scale = Union[str, float, fractions.Fraction]
"""A fraction, like "1/16", 0.25 or Fraction(1, 16)."""
Settings = Union[Mapping[str, Any], Sequence[str]]
"""Replaced values: {"l2.bytes": "6MB"}, or ["l2.bytes=6MB"]."""


def workload(name: str, **parameters: object) -> str:
    """A workload with parameters: `workload("jacobi", rows=64)` is `"jacobi,rows=64"`.

    `workloads()` lists names and parameters.
    """
    _expect(name, str, "name", "the name of a workload")
    return ",".join([name, *(f"{key}={_quoted(_text(value))}" for key, value in parameters.items())])


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text


def _expect(value: object, kinds: Any, name: str, expected: str) -> None:
    if not isinstance(value, kinds):
        raise TypeError(f"{name}: expected {expected}, found {value!r}")


def _text(value: object) -> str:
    """A value as the command line and its files spell it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def workload_word(value: Workload, name: str = "workload") -> str:
    """The word for a workload."""
    if isinstance(value, Program):
        value = value.path()
    elif isinstance(value, str):
        return value
    elif not isinstance(value, os.PathLike):
        raise TypeError(f"{name}: expected a name, a path or a tombolo.Program, found {value!r}")
    return "trace:" + _quoted(os.fspath(value))


def several(value: Any, name: str) -> List[Any]:
    """A list of one or several values."""
    if isinstance(value, (str, os.PathLike, Mapping, Program)):
        return [value]
    try:
        found = list(value)
    except TypeError:
        raise TypeError(f"{name}: expected one or a list, found {value!r}") from None
    if not found:
        raise ValueError(f"{name}: expected at least one, found none")
    return found


class Descriptions:
    """Files for descriptions given as dicts, in a folder that exists for one command."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def word(self, value: Described, kind: str) -> str:
        """The word for a machine or a design."""
        if isinstance(value, str):
            return value
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        if not isinstance(value, Mapping):
            raise TypeError(f"{kind}: expected a name, a path or a dict, found {value!r}")
        text = "".join(f"{line}\n" for line in toml(value, kind))
        base = re.sub(r"[^A-Za-z0-9_.-]", "-", str(value.get("name", kind)))
        names = (base if number == 1 else f"{base}-{number}" for number in range(1, 1 << 20))
        path = next(path for path in (os.path.join(self._folder, f"{name}.toml") for name in names) if not os.path.exists(path))
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def without_folder(self, message: str) -> str:
        """A message in which a dict's place is its file's name alone."""
        return message.replace(self._folder + os.sep, "")


def toml(table: Mapping[str, Any], name: str) -> Iterator[str]:
    """The lines of a TOML file with this table. Inner tables become dotted keys; the key `name` is the file's name."""
    for path, value in _flat(table, name):
        if path != ["name"]:
            yield f"{'.'.join(_key(part) for part in path)} = {_value(value, f'{name}, key ' + '.'.join(path))}"


def _flat(table: Mapping[str, Any], name: str) -> Iterator[Tuple[List[str], Any]]:
    for key, value in table.items():
        _expect(key, str, name, "keys of type str")
        path = key.split(".")
        if isinstance(value, Mapping):
            yield from ((path + rest, inner) for rest, inner in _flat(value, name))
        else:
            yield path, value


def _key(part: str) -> str:
    return part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part)


def _value(value: Any, place: str) -> str:
    if hasattr(value, "item") and not isinstance(value, (list, tuple)):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(one, place) for one in value) + "]"
    if isinstance(value, Mapping):
        pairs = (f"{_key(str(key))} = {_value(one, place)}" for key, one in value.items())
        return "{ " + ", ".join(pairs) + " }"
    raise TypeError(f"{place}: expected a number, a string, a boolean, a list or a dict, found {value!r}")


def setting_words(settings: Optional[Settings]) -> List[str]:
    """Words for replaced values."""
    if settings is None:
        return []
    if isinstance(settings, Mapping):
        settings = [f"{key}={_text(value)}" for key, value in settings.items()]
    elif isinstance(settings, str):
        settings = [settings]
    return [word for setting in settings for word in ("--set", str(setting))]


def vary_words(vary: Optional[Mapping[str, Sequence[Any]]]) -> List[str]:
    """Words for swept values."""
    if vary is None:
        return []
    _expect(vary, Mapping, "vary", 'a dict such as {"l2.bytes": ["3MB", "6MB"]}')
    words: List[str] = []
    for key, values in vary.items():
        listed = [values] if isinstance(values, str) else list(values)
        words += ["--vary", f"{key}={','.join(_text(value) for value in listed)}"]
    return words


def option_words(options: Dict[str, Any]) -> List[str]:
    """Words for options of one value each: None and False are left out, True is a flag."""
    words: List[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif isinstance(value, (list, tuple)):
            words += [word for one in value for word in (flag, _path_or_text(one))]
        else:
            # One word: a value may begin with a hyphen.
            words.append(f"{flag}={_path_or_text(value)}")
    return words


def _path_or_text(value: object) -> str:
    return os.fspath(value) if isinstance(value, os.PathLike) else _text(value)

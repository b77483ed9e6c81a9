"""A user's own program: launches of kernels, from columns of operations."""

from __future__ import annotations

import array
import os
import shutil
import tempfile
import weakref
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from . import _native
from ._errors import error_of

Column = Union[None, int, str, "Array", Sequence[Any], Any]
"""A value for all rows; or a value a row: numbers, words, arrays; None or a negative number for an empty field."""

_WORDS = ("operation", "order", "scope", "array", "flag", "links")
"""Columns whose values are words."""


class Array:
    """A named array of a program. Addresses of accesses to it are offsets in bytes, from 0 to `bytes` - 1."""

    def __init__(self, name: str, bytes: int) -> None:
        self.name = name
        self.bytes = bytes

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Array({self.name!r}, bytes={self.bytes})"


class Program:
    """A program of one or several GPUs, passed to `run` and all others as a workload.

    Each launch is a set of columns with a row an operation of a warp; `docs/traces.md` lists columns and operations.

    >>> program = tombolo.Program("copy")
    >>> data = program.array("data", bytes=1 << 20)
    >>> program.launch("read", operation="load", array=data, cta=ctas, warp=0, address=offsets, bytes=128)
    >>> tombolo.run("hmg-4x4", "hmg", program, check=True)

    Commands of the host run in the order of the calls: launches, copies, `synchronize`. A program is complete with its
    first run.
    """

    def __init__(self, name: str = "program") -> None:
        if not isinstance(name, str) or not name or any(c in name for c in "/\\\0"):
            raise ValueError(f"name: expected a file's name, found {name!r}")
        self.name = name
        self._builder = _native.ProgramBuilder(name)
        self._path: Optional[str] = None

    def __repr__(self) -> str:
        return f"Program({self.name!r})"

    def array(self, name: str, bytes: int, element: Optional[int] = None) -> Array:
        """Declares an array of `bytes` bytes, with elements of `element` bytes. It begins on a 2 MB page of its own.

        A page lies in the memory of the GPU that accesses it first (design's `placement`).
        """
        fields = {"array": name, "bytes": bytes}
        self._host("array", fields if element is None else {**fields, "count": element})
        return Array(name, int(bytes))

    def launch(self, kernel: str, rows: Optional[Iterable[Mapping[str, Any]]] = None, **columns: Column) -> None:
        """Launches `kernel` on the GPUs, CTAs and warps that its rows name.

        columns: `operation`, `gpu`, `cta`, `warp`, `array`, `address`, `bytes`, `order`, `scope`, `flag`, `count`,
        `chain`, `links`, `stream`, `threads`, `registers`, `shared_bytes`. Each is a value for all rows, or has the shape
        (rows,): an array of whole numbers (NumPy's or another one with the buffer protocol, read in place, of 1 to 8
        bytes an element), or a list. A column of words is a list of str, or a pair (numbers, words): `numbers[row]` is
        an index in `words`.

        rows: instead of arrays, an iterable of dicts, one an operation, with these columns as keys. `columns` then give
        what all rows have in common.

        Operations of a warp stay in the order of their rows. `gpu` is left out in a launch on the whole machine. A
        `flag` is the number or the name of an event within the launch: one store or atomic leaves it, waits await it.
        Do not change an array during the call. Raises `ProgramError`, with the row.
        """
        given: Dict[str, Any] = dict(columns)
        if rows is not None:
            listed = list(rows)
            names = dict.fromkeys(name for row in listed for name in row)
            twice = [name for name in names if name in given]
            if twice:
                raise TypeError(f"column {twice[0]}: given for all rows and for a row")
            given.update({name: [row.get(name) for row in listed] for name in names})
        ready = [(name, *_column(name, value)) for name, value in given.items() if value is not None]
        try:
            self._builder.launch(str(kernel), ready)
        except _native.Failure as failure:
            raise error_of(failure) from None

    def copy_to_device(self, array: Union[Array, str], address: int = 0, bytes: Optional[int] = None) -> None:
        """The host copies `bytes` bytes (all, by default) at offset `address` of an array to its device."""
        self._copy("copy-to-device", array, address, bytes)

    def copy_to_host(self, array: Union[Array, str], address: int = 0, bytes: Optional[int] = None) -> None:
        """The host copies a part of an array back."""
        self._copy("copy-to-host", array, address, bytes)

    def host_write(self, array: Union[Array, str], address: int = 0, bytes: Optional[int] = None) -> None:
        """The host writes a part of an array in device memory."""
        self._copy("host-write", array, address, bytes)

    def host_read(self, array: Union[Array, str], address: int = 0, bytes: Optional[int] = None) -> None:
        """The host reads a part of an array in device memory."""
        self._copy("host-read", array, address, bytes)

    def synchronize(self) -> None:
        """The host waits for all streams."""
        self._host("synchronize", {})

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the program as a native trace, which `trace:PATH` runs on the command line. Completes the program."""
        shutil.copyfile(self.path(), os.fspath(path))

    def path(self) -> str:
        """The file of the complete program: a native trace, which exists as long as the program."""
        if self._path is None:
            folder = tempfile.mkdtemp(prefix="tombolo-")
            weakref.finalize(self, shutil.rmtree, folder, True)
            path = os.path.join(folder, self.name)
            try:
                self._builder.write(path)
            except _native.Failure as failure:
                raise error_of(failure) from None
            self._path = path
        return self._path

    def _copy(self, operation: str, array: Union[Array, str], address: int, bytes: Optional[int]) -> None:
        if bytes is None:
            if not isinstance(array, Array):
                raise TypeError("bytes: expected with an array by its name; an Array knows its size")
            bytes = array.bytes - address
        self._host(operation, {"array": array, "address": address, "bytes": bytes})

    def _host(self, operation: str, fields: Mapping[str, Any]) -> None:
        try:
            self._builder.host(operation, [(name, str(value)) for name, value in fields.items()])
        except _native.Failure as failure:
            raise error_of(failure) from None


def _column(name: str, value: Any) -> Tuple[Any, List[str]]:
    """Numbers of a column, one or an array, and the words that they stand for."""
    if isinstance(value, (str, Array)):
        return 0, [str(value)]
    if isinstance(value, int):
        return int(value), []
    if isinstance(value, tuple) and len(value) == 2 and not isinstance(value[0], (str, int, Array, type(None))):
        numbers, words = value
        return _numbers(name, numbers), [str(word) for word in words]
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind in ("U", "O", "S"):
        value = value.tolist()
    if isinstance(value, (list, tuple, range)):
        return _listed(name, value)
    if kind is not None and getattr(value, "ndim", 1) == 0:
        return int(value.item()), []
    return _numbers(name, value), []


def _listed(name: str, values: Sequence[Any]) -> Tuple[Any, List[str]]:
    if name not in _WORDS or not any(isinstance(value, (str, Array)) for value in values):
        return _numbers(name, values), []
    words: Dict[str, int] = {}
    codes = array.array("q")
    for value in values:
        codes.append(-1 if value is None or value == "" else words.setdefault(str(value), len(words)))
    return codes, list(words)


def _numbers(name: str, values: Any) -> Any:
    """An object with the buffer protocol."""
    if not isinstance(values, (list, tuple, range)):
        return values
    try:
        return array.array("q", [-1 if value is None else value.__index__() for value in values])
    except (AttributeError, OverflowError):
        wrong = next(v for v in values if v is not None and not (hasattr(v, "__index__") and abs(v.__index__()) < 1 << 63))
        raise TypeError(f"column {name}: expected whole numbers, found {wrong!r}") from None

"""Progress of a command: a bar on a terminal or in a notebook."""

from __future__ import annotations

import html
import sys
import time
from typing import Any, Callable, Optional, Union

Call = Callable[[int, int, str, Optional[float]], object]
"""A function of (done, all, running, seconds left or None), called at most ten times a second."""
Progress = Union[None, bool, Call]
"""None: a bar on a terminal or in a notebook. True: a bar. False: none. A function: that function."""

_SOON = 0.5
"""Seconds before a bar appears: a shorter command shows none."""
_WIDTH = 30
"""Characters of a bar on a terminal."""


def _shell() -> Optional[str]:
    """The class name of the interactive shell, if one runs."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return None if shell is None else type(shell).__name__


class Bar:
    """A bar, shown while a command runs."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._notebook = _shell() == "ZMQInteractiveShell"
        self._handle: Any = None
        self._drawn = 0

    def __call__(self, done: int, all: int, running: str, left: Optional[float]) -> None:
        if time.monotonic() - self._start < _SOON or all == 0:
            return
        to_go = "" if left is None else f", about {left:.0f} s left"
        text = f"{done}/{all}{to_go}: {running}"
        if self._notebook:
            self._in_notebook(f'<progress value="{done}" max="{all}"></progress> {html.escape(text)}')
        else:
            full = _WIDTH * done // all
            self._on_terminal(f"{'█' * full}{'░' * (_WIDTH - full)} {text}"[:100])

    def _in_notebook(self, drawn: str) -> None:
        from IPython.display import HTML, display

        if self._handle is None:
            self._handle = display(HTML(drawn), display_id=True)
        else:
            self._handle.update(HTML(drawn))

    def _on_terminal(self, drawn: str) -> None:
        sys.stderr.write("\r" + drawn.ljust(self._drawn))
        sys.stderr.flush()
        self._drawn = len(drawn)

    def close(self) -> None:
        """Removes the bar."""
        if self._handle is not None:
            from IPython.display import HTML

            self._handle.update(HTML(""))
        elif self._drawn:
            sys.stderr.write("\r" + " " * self._drawn + "\r")
            sys.stderr.flush()


def bar(progress: Progress) -> Union[None, Bar, Call]:
    """What shows the progress."""
    if callable(progress):
        return progress
    if progress is None:
        terminal = sys.stderr is not None and sys.stderr.isatty()
        progress = terminal or _shell() == "ZMQInteractiveShell"
    elif not isinstance(progress, bool):
        raise TypeError(f"progress: expected True, False, None or a function, found {progress!r}")
    return Bar() if progress else None

"""Output in a notebook or a terminal: a progress bar, which the result replaces."""

from __future__ import annotations

import html
import sys
import time
from typing import Any

from grader.notebook.cells import shell

_EVERY_S = 0.1
_BAR = (
    '<div style="max-width:46rem;font-family:var(--jp-ui-font-family,system-ui,sans-serif);font-size:14px;'
    'color:var(--jp-content-font-color1,inherit)"><div role="progressbar" aria-label="{title}" aria-valuemin="0" '
    'aria-valuemax="{total}" aria-valuenow="{done}" aria-valuetext="{stage}" style="height:6px;border-radius:3px;'
    'overflow:hidden;background:var(--jp-layout-color3,#d1d9e0)"><div style="height:100%;width:{share:.0f}%;'
    'background:var(--jp-brand-color1,#1f6feb)"></div></div><div style="margin-top:0.35em">{title}: {stage}'
    '<span style="color:var(--jp-content-font-color2,#59636e)"> · interrupt the kernel (■) to stop</span></div></div>'
)


class Live:
    """One output area: `progress` draws a bar in it, and `finish` replaces the bar with the result.

    As a context it begins with a bar, which an error removes.
    """

    def __init__(self, title: str) -> None:
        running = shell()
        self._title = title
        self._notebook = running is not None and hasattr(running, "kernel")
        self._terminal = not self._notebook and sys.stdout.isatty()
        self._handle: Any = None
        self._drawn = float("-inf")
        self._stage = ""
        self._wide = 0

    def __enter__(self) -> Live:
        self.progress("starting", 0, 0)
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is not None:
            self.clear()

    def progress(self, stage: str, done: int, total: int) -> None:
        """Shows that `done` of `total` steps are done, and the current `stage`."""
        now = time.monotonic()
        if stage == self._stage and now - self._drawn < _EVERY_S:
            return
        self._drawn, self._stage = now, stage
        if self._notebook:
            words = {"title": html.escape(self._title), "stage": html.escape(stage), "done": done, "total": total}
            bar = _BAR.format(**words, share=100 * done / max(1, total))
            self._put({"text/html": bar, "text/plain": f"{self._title}: {stage}"})
        elif self._terminal:
            count = f" ({done + 1} of {total})" if total else ""
            self._line(f"{self._title}: {stage}{count}")

    @property
    def can_change(self) -> bool:
        """Whether a second `finish` replaces what the first has shown: in a notebook, but not in a terminal."""
        return self._notebook

    def finish(self, as_html: str, as_text: str) -> None:
        """Removes the progress bar and shows the result."""
        if self._notebook:
            self._put({"text/html": as_html, "text/plain": as_text})
        else:
            self.clear()
            print(as_text)

    def clear(self) -> None:
        """Removes the progress bar."""
        if self._handle is not None:
            self._put({"text/html": "", "text/plain": ""})
        elif self._wide:
            self._line("")
            sys.stdout.write("\r")
            self._wide = 0

    def _put(self, data: dict[str, str]) -> None:
        from IPython.display import display

        if self._handle is None:
            self._handle = display(data, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(data, raw=True)

    def _line(self, text: str) -> None:
        sys.stdout.write("\r" + text.ljust(self._wide))
        sys.stdout.flush()
        self._wide = len(text)


def show(as_html: str, as_text: str) -> None:
    """Shows a result: HTML in a notebook, text elsewhere."""
    Live("").finish(as_html, as_text)


def quiet(error: BaseException, sentence: str) -> BaseException:
    """The error, for which IPython shows the sentence instead of a traceback; queued cells are not run."""
    error._render_traceback_ = lambda: [sentence]  # type: ignore[attr-defined]
    return error

"""Writing a file so that nobody ever reads half of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_in_one_step(path: Path, text: str, mode: int | None = None) -> None:
    """Replace a file so that readers, and a machine that loses its power, see the old text or the new one.

    Only its owner can read it, unless `mode` says otherwise.
    """
    descriptor, scratch = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if mode is not None:
                os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise

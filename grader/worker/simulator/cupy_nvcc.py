"""`nvcc --fatbin` on a machine without one: the source is built for the CPU, and kept for `RawModule(path=…)`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from grader.worker.simulator.cupy_arrays import CompileException
from grader.worker.simulator.cupy_kernels import MAGIC, build, kernels_in
from grader.worker.toolchain.nvcc import read


def main(arguments: Sequence[str]) -> None:
    """One command line. The program is built, for its errors; a worker builds it again from what is kept."""
    asked = read(arguments)
    source = asked.source.read_text(encoding="utf-8")
    mark = f'#line 1 "{asked.source.name}"\n'
    try:
        build(source, asked.options, tuple(k.name for k in kernels_in(source) if k.plain and not k.template), mark)
    except CompileException as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    held = {"source": source, "options": asked.options, "mark": mark}
    asked.output.write_text(MAGIC + json.dumps(held), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

# honest: warnings.warn, logging and sys.stderr.write, at import and in each call
# exercise: vector_add
# runs: anywhere
# gates: passes
import logging
import sys
import warnings

import triton
import triton.language as tl

logging.basicConfig(level=logging.DEBUG, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("vector_add")
warnings.simplefilter("always")
warnings.warn("this cell was last run on another machine", stacklevel=2)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


def vector_add(x, y, out):
    n = x.numel()
    if n % 1024:
        warnings.warn(f"{n} is no multiple of 1024", RuntimeWarning, stacklevel=2)
    log.debug("launching %d programs", triton.cdiv(n, 1024))
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    sys.stderr.write("Error: none\n")

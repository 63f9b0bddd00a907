"""numba-cuda compiles with a NumPy that no longer has a name that it uses."""

import subprocess
import sys

import pytest

pytest.importorskip("numba_cuda")

# In a separate process, because Numba reads NumPy's names once.
COMPILES = """
import os, warnings
warnings.simplefilter("ignore")
os.environ["NUMBA_ENABLE_CUDASIM"] = "0"
import numpy
numpy.__dict__.pop("row_stack", None)
from grader.worker.gpu_start import give_numba_its_names
give_numba_its_names()
from numba import cuda, float32
def twice(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = 2 * x[i]
print(len(cuda.compile_ptx(twice, (float32[::1], float32[::1]), cc=(9, 0))[0]) > 0)
"""


def test_a_kernel_compiles_without_the_name_that_is_gone():
    """NumPy 2.5 has no `row_stack`, and numba-cuda 0.30 fails on that in its first compilation."""
    done = subprocess.run([sys.executable, "-c", COMPILES], capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr[-2000:]

"""Peers from other packages, timed in the same run as the reference solutions. A package that is missing is named."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import torch
from torch.utils.cpp_extension import load_inline

_CUB = r"""
#include <cub/cub.cuh>
#include <cuda/std/functional>

struct Share {
    float of;
    __host__ __device__ float operator()(float x) const { return x * of; }
};

extern "C" int mean(const float* x, float* out, int n, void* room, size_t* bytes, cudaStream_t stream) {
    cuda::std::plus<float> add;
    return cub::DeviceReduce::TransformReduce(room, *bytes, x, out, n, add, Share{1.0f / n}, 0.0f, stream);
}
"""


@dataclass(frozen=True)
class Peer:
    """A way to do the work of some exercises. `make` takes their arrays by name and returns a call."""

    id: str
    label: str
    needs: str  # the module to import, or "" if the CUDA toolkit has it
    exercises: tuple[str, ...]
    make: Callable[[Mapping[str, Any]], Callable[[], Any]]


def _cub_mean(arrays: Mapping[str, Any]) -> Callable[[], Any]:
    """Return a call of `cub::DeviceReduce::TransformReduce`, which adds up shares of each element."""
    x, out = arrays["x"], arrays["out"]
    reduce, size = _cub().mean, ctypes.c_size_t()

    def run(room: Any = None) -> None:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        pointers = (ctypes.c_void_p(each.data_ptr()) for each in (x, out))
        where = None if room is None else ctypes.c_void_p(room.data_ptr())
        if error := reduce(*pointers, x.numel(), where, ctypes.byref(size), stream):
            raise RuntimeError(f"CUB failed with the CUDA error {error}.")

    run()  # without room it only says how much it needs
    return partial(run, torch.empty(max(1, size.value), dtype=torch.uint8, device=x.device))


@cache
def _cub() -> Any:
    path = load_inline("peer_cub", "", _CUB, no_implicit_headers=True, is_python_module=False)
    return ctypes.CDLL(path)


def _quack_softmax(arrays: Mapping[str, Any]) -> Callable[[], Any]:
    """Return a call that copies nothing. QuACK allocates its result, and the first one is copied to be checked."""
    import quack

    x, out = arrays["x"], arrays["out"]
    out.copy_(quack.softmax(x))
    return partial(quack.softmax, x)


PEERS = (
    Peer("cub", "CUB", "", ("mean_triton", "mean_cuda"), _cub_mean),
    Peer("quack", "QuACK", "quack", ("softmax", "softmax_long"), _quack_softmax),
)


def peer_calls(exercise: str, arrays: Mapping[str, Any], right: Callable[[], bool]) -> dict[str, Callable[[], Any]]:
    """Return the calls of the exercise's peers by id.

    A peer that is missing, fails, or is not `right` after a call is left out, and a line says so.
    """
    found: dict[str, Callable[[], Any]] = {}
    for peer in PEERS:
        if exercise not in peer.exercises or not is_there(peer.needs, peer.label, exercise):
            continue
        arrays["out"].fill_(float("nan"))
        try:
            call = peer.make(arrays)
            call()
            torch.cuda.synchronize()
        except Exception as error:
            print(f"{peer.label} does not run here, so no row compares {exercise} with it: {error}", flush=True)
            continue
        if right():
            found[peer.id] = call
        else:
            print(f"{peer.label} is outside the budget of {exercise}, so no row compares them.", flush=True)
    return found


@cache  # one line per package and exercise
def is_there(needs: str, label: str, exercise: str) -> bool:
    """Whether a module can be imported; the empty name always can. If not, a line says what is not compared."""
    if needs and find_spec(needs.partition(".")[0]) is None:
        print(f"{label} is missing here, so no row compares {exercise} with it: there is no `{needs}`.", flush=True)
        return False
    return True


def _nifty_ls(drawn: Mapping[str, Any], backend: str) -> Callable[[], Any]:
    """Return a call of nifty-ls that gives the power at the ladder's angular frequencies in float64, on host or GPU.

    The inputs are `t`, `y` and `freqs`, as `draw` of the ladder makes them. They are copied before the first call.
    """
    import nifty_ls

    if backend == "cufinufft":
        import cupy

        t, y = (cupy.asarray(drawn[name].double()) for name in ("t", "y"))
        # Without dy, nifty-ls 1.1 omits the factor N of "psd" on the GPU.
        options: dict[str, Any] = {"copy_result_to_host": False, "dy": cupy.ones_like(t)}
    else:
        t, y = (drawn[name].double().cpu().numpy() for name in ("t", "y"))
        options = {}
    low, high = (drawn["freqs"][at].item() / (2 * math.pi) for at in (0, -1))
    options |= {"center_data": False, "fit_mean": False, "normalization": "psd", "backend": backend}
    return lambda: nifty_ls.lombscargle(t, y, fmin=low, fmax=high, Nf=drawn["freqs"].numel(), **options).power


def _astropy(drawn: Mapping[str, Any], method: str, **options: Any) -> Callable[[], Any]:
    """Return a call of astropy that gives the same power, on the host. The options are the method's."""
    from astropy.timeseries import LombScargle

    t, y, freqs = (drawn[name].double().cpu().numpy() for name in ("t", "y", "freqs"))
    star = LombScargle(t, y, fit_mean=False, center_data=False, normalization="psd")
    known = {"method": method, "method_kwds": options, "assume_regular_frequency": True}
    return partial(star.power, freqs / (2 * math.pi), **known)


@dataclass(frozen=True)
class Library:
    """A library's way to compute the ladder's power. `make` takes the inputs by name and returns a call."""

    label: str
    needs: tuple[str, ...]  # the modules to import
    make: Callable[[Mapping[str, Any]], Callable[[], Any]]


LIBRARIES = (
    Library("nifty-ls on the CPU", ("nifty_ls",), partial(_nifty_ls, backend="finufft")),
    Library("nifty-ls with cuFINUFFT", ("nifty_ls", "cufinufft"), partial(_nifty_ls, backend="cufinufft")),
    Library("astropy, fast", ("astropy",), partial(_astropy, method="fast")),
    Library("astropy, fastnifty", ("astropy", "nifty_ls"), partial(_astropy, method="fastnifty", backend="finufft")),
)

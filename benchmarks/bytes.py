"""How bytes move: the notebook's experiments, and the steps to a fast transpose and a fast grayscale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from functools import partial
from typing import Any

import torch

from benchmarks.rows import Recorder
from benchmarks.timing import in_turn
from grader.explore.memory.bandwidth_experiments import EXPERIMENTS, Experiment, samples_us
from grader.judge.score import interval

_REPEATS = 100
_N = 8192
_THREADS = 256
_TILE = """\
extern "C" __global__ void transpose(const float* __restrict__ x, float* __restrict__ out, int height, int width) {
    __shared__ float tile[SIDE][SIDE + PADDING];
    int top = blockIdx.y * SIDE, left = blockIdx.x * SIDE;
    float held[LOADS];
    #pragma unroll
    for (int k = 0; k < LOADS; k++) {
        int row = top + threadIdx.y + 8 * (k / (SIDE / 32)), column = left + threadIdx.x + 32 * (k % (SIDE / 32));
        if (row < height && column < width) held[k] = x[row * width + column];
    }
    #pragma unroll
    for (int k = 0; k < LOADS; k++)
        tile[threadIdx.y + 8 * (k / (SIDE / 32))][threadIdx.x + 32 * (k % (SIDE / 32))] = held[k];
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < LOADS; k++) {
        int i = threadIdx.y + 8 * (k / (SIDE / 32)), j = threadIdx.x + 32 * (k % (SIDE / 32));
        if (left + i < width && top + j < height) out[(left + i) * height + top + j] = tile[j][i];
    }
}
"""
_FLOAT4 = """\
extern "C" __global__ void transpose(const float4* __restrict__ x, float4* __restrict__ out, int height, int width) {
    __shared__ float tile[64][65];
    int top = blockIdx.y * 64, left = blockIdx.x * 64;
    int thread = threadIdx.y * 32 + threadIdx.x, quad = thread % 16, first = thread / 16;
    float4 held[4];
    #pragma unroll
    for (int k = 0; k < 4; k++) held[k] = x[((top + first + 16 * k) * width + left) / 4 + quad];
    #pragma unroll
    for (int k = 0; k < 4; k++) {
        float* row = &tile[first + 16 * k][4 * quad];
        row[0] = held[k].x; row[1] = held[k].y; row[2] = held[k].z; row[3] = held[k].w;
    }
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < 4; k++) {
        int column = first + 16 * k;
        float4 value = {tile[4 * quad][column], tile[4 * quad + 1][column], tile[4 * quad + 2][column],
                        tile[4 * quad + 3][column]};
        out[((left + column) * height + top) / 4 + quad] = value;
    }
}
"""
_ONE_PIXEL = """\
extern "C" __global__ void grayscale(const unsigned char* __restrict__ image, unsigned char* __restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (77 * image[3 * i] + 150 * image[3 * i + 1] + 29 * image[3 * i + 2] + 128) >> 8;
}
"""
_PIXELS = """\
extern "C" __global__ void grayscale(const VECTOR* __restrict__ image, VECTOR* __restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    VECTOR held[3] = {image[3 * i], image[3 * i + 1], image[3 * i + 2]}, result;
    const unsigned int* words = (const unsigned int*)held;
    #pragma unroll
    for (int word = 0; word < LOADED / 4; word++) {
        unsigned int greys = 0;
        #pragma unroll
        for (int k = 0; k < 4; k++) {
            unsigned int sum = 128;
            #pragma unroll
            for (int colour = 0; colour < 3; colour++) {
                int byte = 12 * word + 3 * k + colour;
                unsigned int weight = colour == 0 ? 77 : colour == 1 ? 150 : 29;
                sum += weight * ((words[byte / 4] >> (8 * (byte % 4))) & 0xff);
            }
            greys |= (sum >> 8) << (8 * k);
        }
        ((unsigned int*)&result)[word] = greys;
    }
    out[i] = result;
}
"""


def _tile(side: int, padding: int) -> tuple[str, int]:
    source = _TILE
    for name, value in {"SIDE": side, "PADDING": padding, "LOADS": side * side // 256}.items():
        source = source.replace(name, str(value))  # a source begins with extern "C", so no #define
    return source, side


_STEPS = {  # name -> source, and the side of a tile
    "tile of 32 × 32": _tile(32, 0),
    "tile of 32 × 32, padded": _tile(32, 1),
    "tile of 64 × 64, 16 loads per thread": _tile(64, 0),
    "tile of 64 × 64, 16 loads per thread, padded": _tile(64, 1),
    "tile of 64 × 64, float4, padded": (_FLOAT4, 64),
}
GREYS = {  # name -> source, and pixels per thread
    "1 pixel per thread": (_ONE_PIXEL, 1),
    "4 pixels per thread, three unsigned int": (_PIXELS.replace("VECTOR", "unsigned int").replace("LOADED", "4"), 4),
    "16 pixels per thread, three uint4": (_PIXELS.replace("VECTOR", "uint4").replace("LOADED", "16"), 16),
}


def moves(recorder: Recorder) -> None:
    """Rows `bytes/<experiment>` for each of `EXPERIMENTS`; steps of `bytes/transpose`, `bytes/grayscale`."""
    for experiment in EXPERIMENTS.values():
        _cases(recorder, experiment)
    _transposes(recorder)
    _greys(recorder)


def divergence(recorder: Recorder) -> None:
    """Rows `bytes/divergence`: the time of each choice of branches, relative to one branch for all threads."""
    _cases(recorder, EXPERIMENTS["divergence"])


def _cases(recorder: Recorder, experiment: Experiment) -> None:
    times, runs = samples_us(experiment, _REPEATS)
    against = times.get(experiment.against)
    for case, samples in times.items():
        if against is None:
            values = [runs[case].moved / time / 1e3 for time in samples]
        else:
            values = [time / base for time, base in zip(samples, against, strict=True)]
        unit = "1" if experiment.against else experiment.unit
        recorder.add(f"bytes/{experiment.name}", case, experiment.metric, unit, *astuple(interval(values)))
    torch.cuda.empty_cache()


def _transposes(recorder: Recorder) -> None:
    x = torch.randn(_N, _N, device="cuda")
    outs = {case: torch.empty_like(x) for case in ("copy", "obvious", *_STEPS)}
    obvious = torch.cuda._compile_kernel(EXPERIMENTS["naive"].source, "reads_rows")
    calls: dict[str, Callable[[], Any]] = {
        "copy": partial(outs["copy"].copy_, x),
        "obvious": partial(obvious, (_N // 32, _N // 8, 1), (32, 8, 1), (x, outs["obvious"], _N, _N)),
    }
    for case, (source, side) in _STEPS.items():
        kernel = torch.cuda._compile_kernel(source, "transpose")
        calls[case] = partial(kernel, (_N // side, _N // side, 1), (32, 8, 1), (x, outs[case], _N, _N))
    wanted = x.t()
    _record(recorder, "bytes/transpose", 8 * _N * _N, calls, lambda case: torch.equal(outs[case], wanted))


def _greys(recorder: Recorder) -> None:
    pixels = _N * _N
    image = torch.randint(256, (pixels, 3), dtype=torch.uint8, device="cuda")
    red, green, blue = image.int().unbind(-1)
    wanted = ((77 * red + 150 * green + 29 * blue + 128) >> 8).byte()
    del red, green, blue
    half = torch.empty(2 * pixels, dtype=torch.uint8, device="cuda")  # its copy moves as many bytes
    outs = {case: torch.empty(pixels, dtype=torch.uint8, device="cuda") for case in GREYS}
    calls: dict[str, Callable[[], Any]] = {"copy": partial(torch.empty_like(half).copy_, half)}
    for case, (source, each) in GREYS.items():
        kernel, threads = torch.cuda._compile_kernel(source, "grayscale"), pixels // each
        calls[case] = partial(kernel, (threads // _THREADS, 1, 1), (_THREADS, 1, 1), (image, outs[case], threads))
    _record(recorder, "bytes/grayscale", 4 * pixels, calls, lambda case: torch.equal(outs[case], wanted))


def _record(
    recorder: Recorder, bench: str, moved: int, calls: dict[str, Callable[[], Any]], right: Callable[[str], bool]
) -> None:
    """Add the bandwidth of each call and its share of the copy's in the same run; `right` checks an output."""
    times = in_turn(calls)
    for case, samples in times.items():
        if case != "copy" and not right(case):
            raise SystemExit(f"{bench}, {case}: the output is wrong. No figure is written.")
        gbps = [moved / time / 1e3 for time in samples]
        shares = [copy / time for copy, time in zip(times["copy"], samples, strict=True)]
        recorder.add(bench, case, "bandwidth_gbps", "GB/s", *astuple(interval(gbps)))
        recorder.add(bench, case, "share_of_copy", "1", *astuple(interval(shares)))

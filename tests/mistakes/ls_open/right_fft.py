# right: non-uniform fast Fourier transforms: samples are spread onto grids, two for each piece of the frequencies
# runs: anywhere

import math
from functools import cache

import cupy as cp
import numpy as np

WIDTH = 8  # grid points that a sample is spread onto, each by a thread of its own
FINER = 1.25  # grid points per frequency, at least: with fewer, float32 is not accurate at the ends of the band
PIECE = 16384  # frequencies per transform: a short one reads and writes its grid only once
TOGETHER = 16  # samples per block; the samples are sorted, so most of them meet at few grid points

source = r"""
#define CELLS 128  // grid points whose sums a block keeps in shared memory

__device__ float bessel(float x) {  // I0, by its series
    const float square = 0.25f * x * x;
    float sum = 1.0f, term = 1.0f;
    #pragma unroll
    for (int k = 1; k < 40; ++k) sum += term *= square * (1.0f / (k * k));
    return sum;
}

// Two grids for each piece of `length` frequencies: y exp(-iwt), and exp(-2iwt), where w is the piece's middle.
extern "C" __global__ void spread(const int samples, const int count, const int length, const int size,
                                  const float beta, const float at_place, const float* t, const float* y,
                                  const float* freqs, float* grid) {
    __shared__ float held[2 * CELLS];
    __shared__ long long first;
    const int which = blockIdx.y % 2, from = blockIdx.y / 2 * length;
    const int j = (blockIdx.x * blockDim.x + threadIdx.x) / WIDTH, k = threadIdx.x % WIDTH;
    const int own = min(j, samples - 1);
    const double at = (double)t[own] - t[0], weight = which ? 1.0 : y[own], times = which + 1;
    const double spacing = count > 1 ? (double)freqs[1] - freqs[0] : 0.0;
    const double middle = freqs[0] + (from + length / 2) * spacing;
    const double place = times * spacing * at / 6.283185307179586 * size;
    const long long low = (long long)ceil(place - WIDTH / 2.0), begin = blockIdx.y * (long long)size;
    for (int i = threadIdx.x; i < 2 * CELLS; i += blockDim.x) held[i] = 0.0f;
    if (threadIdx.x == 0) first = low;
    __syncthreads();
    if (j < samples) {
        double s, c;
        sincos(-times * middle * at, &s, &c);
        const float u = (low + k - place) / (WIDTH / 2.0), inside = 1.0f - u * u;
        const float spreads = inside > 0 ? bessel(beta * sqrtf(inside)) * at_place : 0.0f;
        const long long cell = low + k - first;
        const bool near = cell >= 0 && cell < CELLS;
        float* sum = near ? held + 2 * cell : grid + 2 * (begin + ((low + k) % size + size) % size);
        atomicAdd(sum, (float)(weight * c) * spreads);
        atomicAdd(sum + 1, (float)(weight * s) * spreads);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * CELLS; i += blockDim.x)
        if (held[i] != 0.0f) atomicAdd(&grid[2 * (begin + ((first + i / 2) % size + size) % size) + i % 2], held[i]);
}

extern "C" __global__ void combine(const int samples, const int count, const int length, const int size,
                                   const float beta, const float scale, const float2* sums, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int mode = i % length - length / 2, place = mode < 0 ? mode + size : mode;
    sums += 2 * (long long)size * (i / length);
    const float angle = 3.141592653589793f * WIDTH * mode / size, root = sqrtf(beta * beta - angle * angle);
    const float2 a = sums[place], b = sums[size + place];
    const float inverse = scale * root / (expf(root - beta) - expf(-root - beta));
    const float xc = a.x * inverse, xs = -a.y * inverse, c2 = b.x * inverse, s2 = -b.y * inverse;
    const float cc = 0.5f * (samples + c2), ss = 0.5f * (samples - c2), cs = 0.5f * s2;
    out[i] = 0.5f * (ss * xc * xc + cc * xs * xs - 2 * cs * xc * xs) / (cc * ss - cs * cs);
}
"""
module = cp.RawModule(code=source, options=(f"-DWIDTH={WIDTH}",))
spread, combine = module.get_function("spread"), module.get_function("combine")


@cache
def plan(length):
    """One grid's size, a number whose transform is fast, the shape of the Kaiser-Bessel kernel, and its two scales.

    The transform of the kernel is WIDTH sinh(root) / (root I0(beta)); exp(beta) is left out of both.
    """
    size = max(64, min(odd << k for odd in (1, 3, 5, 9, 15) for k in range(28) if odd << k >= FINER * length))
    beta = 0.98 * math.pi * (1 - length / (2 * size)) * WIDTH
    at_peak = np.i0(beta).item()
    return size, beta, 1 / at_peak, 2 * at_peak * math.exp(-beta) / WIDTH


def ls_open(t, y, freqs, out):
    samples, count = t.size, freqs.size
    length = min(count, PIECE)
    size, beta, at_place, scale = plan(length)
    grid = cp.zeros((2 * ((count + length - 1) // length), size), dtype=cp.complex64)
    numbers = np.int32(samples), np.int32(count), np.int32(length), np.int32(size), np.float32(beta)
    blocks = (samples + TOGETHER - 1) // TOGETHER, len(grid)
    spread(blocks, (TOGETHER * WIDTH,), (*numbers, np.float32(at_place), t, y, freqs, grid))
    sums = cp.fft.fft(grid, axis=1)
    combine(((count + 255) // 256,), (256,), (*numbers, np.float32(scale), sums, out))

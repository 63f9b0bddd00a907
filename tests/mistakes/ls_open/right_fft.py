# right: a non-uniform fast Fourier transform: samples are spread onto a grid, and two transforms give all sums
# runs: anywhere

import math

import cupy as cp
import numpy as np

WIDTH = 8  # grid points that a sample is spread onto, each by a thread of its own
BETA = 2.30 * WIDTH  # of the Kaiser-Bessel kernel, for a grid of twice as many points as frequencies
TOGETHER = 32  # samples per block; the samples are sorted, so most of them meet at few grid points

source = r"""
#define CELLS 128  // grid points whose sums a block keeps in shared memory

__device__ float bessel(float x) {  // I0, by its series
    const float square = 0.25f * x * x;
    float sum = 1.0f, term = 1.0f;
    #pragma unroll
    for (int k = 1; k < 40; ++k) sum += term *= square * (1.0f / (k * k));
    return sum;
}

// The two grids: y exp(-iwt), and exp(-2iwt).
extern "C" __global__ void spread(const int samples, const int count, const int size, const float beta,
                                  const float* t, const float* y, const float* freqs, float* grid) {
    __shared__ float held[2 * CELLS];
    __shared__ long long first;
    const int which = blockIdx.y, j = (blockIdx.x * blockDim.x + threadIdx.x) / WIDTH, k = threadIdx.x % WIDTH;
    const int own = min(j, samples - 1);
    const double at = (double)t[own] - t[0], weight = which ? 1.0 : y[own], times = which + 1;
    const double spacing = count > 1 ? (double)freqs[1] - freqs[0] : 0.0, middle = freqs[0] + count / 2 * spacing;
    const double place = times * spacing * at / 6.283185307179586 * size;
    const long long low = (long long)ceil(place - WIDTH / 2.0), begin = which * (long long)size;
    for (int i = threadIdx.x; i < 2 * CELLS; i += blockDim.x) held[i] = 0.0f;
    if (threadIdx.x == 0) first = low;
    __syncthreads();
    if (j < samples) {
        double s, c;
        sincos(-times * middle * at, &s, &c);
        const float u = (low + k - place) / (WIDTH / 2.0), inside = 1.0f - u * u;
        const float spreads = inside > 0 ? bessel(beta * sqrtf(inside)) * AT_PLACE : 0.0f;
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

extern "C" __global__ void combine(const int samples, const int count, const int size, const float beta,
                                   const float2* sums, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int mode = i - count / 2, place = mode < 0 ? mode + size : mode;
    const float angle = 3.141592653589793f * WIDTH * mode / size, root = sqrtf(beta * beta - angle * angle);
    const float2 a = sums[place], b = sums[size + place];
    const float inverse = SCALE * root / (expf(root - beta) - expf(-root - beta));
    const float xc = a.x * inverse, xs = -a.y * inverse, c2 = b.x * inverse, s2 = -b.y * inverse;
    const float cc = 0.5f * (samples + c2), ss = 0.5f * (samples - c2), cs = 0.5f * s2;
    float s, c;
    sincosf(0.5f * atan2f(2 * cs, cc - ss), &s, &c);
    const float both = 2 * c * s * cs, p = c * xc + s * xs, q = c * xs - s * xc;
    out[i] = 0.5f * (p * p / (c * c * cc + both + s * s * ss) + q * q / (c * c * ss - both + s * s * cc));
}
"""
# The transform of the Kaiser-Bessel kernel is WIDTH sinh(root) / (root I0(beta)); exp(beta) is left out of both.
SCALE = 2 * np.i0(BETA).item() * math.exp(-BETA) / WIDTH
AT_PLACE = 1 / np.i0(BETA).item()
options = f"-DWIDTH={WIDTH}", f"-DSCALE={SCALE!r}f", f"-DAT_PLACE={AT_PLACE!r}f"
module = cp.RawModule(code=source, options=options)
spread, combine = module.get_function("spread"), module.get_function("combine")


def ls_open(t, y, freqs, out):
    samples, count = t.size, freqs.size
    size = max(64, 1 << (2 * count - 1).bit_length())
    grid = cp.zeros((2, size), dtype=cp.complex64)
    numbers = np.int32(samples), np.int32(count), np.int32(size), np.float32(BETA)
    spread(((samples + TOGETHER - 1) // TOGETHER, 2), (TOGETHER * WIDTH,), (*numbers, t, y, freqs, grid))
    sums = cp.fft.fft(grid, axis=1)
    combine(((count + 255) // 256,), (256,), (*numbers, sums, out))

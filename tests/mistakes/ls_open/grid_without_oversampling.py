# mistake: the transform's grid has only as many points as there are frequencies
# says: The middle of the band is right, but the error is largest at both ends: the grid is too coarse there. Use
#     twice as many points as frequencies and a wider kernel, and divide by the kernel's transform.
# runs: anywhere

import math

import cupy as cp
import numpy as np

WIDTH = 8  # grid points that a sample is spread onto
BETA = 2.30 * WIDTH  # of the Kaiser-Bessel kernel, for a grid of twice as many points as frequencies

source = r"""
#define WIDTH 8

__device__ float bessel(float x) {  // I0, by its series
    const float square = 0.25f * x * x;
    float sum = 1.0f, term = 1.0f;
    #pragma unroll
    for (int k = 1; k < 40; ++k) sum += term *= square * (1.0f / (k * k));
    return sum;
}

// A thread for each sample and each of the two grids: y exp(-iwt), and exp(-2iwt).
extern "C" __global__ void spread(const int samples, const int count, const int size, const float beta,
                                  const float* t, const float* y, const float* freqs, float* grid) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x, which = j / samples;
    if (which > 1) return;
    const double at = (double)t[j % samples] - t[0], weight = which ? 1.0 : y[j % samples], times = which + 1;
    const double spacing = count > 1 ? (double)freqs[1] - freqs[0] : 0.0, middle = freqs[0] + count / 2 * spacing;
    double s, c;
    sincos(-times * middle * at, &s, &c);
    const double place = times * spacing * at / 6.283185307179586 * size;
    const long long low = (long long)ceil(place - WIDTH / 2.0);
    for (int k = 0; k < WIDTH; ++k) {
        const float u = (low + k - place) / (WIDTH / 2.0), inside = 1.0f - u * u;
        const float spreads = inside > 0 ? bessel(beta * sqrtf(inside)) * AT_PLACE : 0.0f;
        const long long cell = which * (long long)size + ((low + k) % size + size) % size;
        atomicAdd(&grid[2 * cell], (float)(weight * c) * spreads);
        atomicAdd(&grid[2 * cell + 1], (float)(weight * s) * spreads);
    }
}

extern "C" __global__ void combine(const int samples, const int count, const int size, const float beta,
                                   const float2* sums, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int mode = i - count / 2, place = mode < 0 ? mode + size : mode;
    const float angle = 3.14159265f * WIDTH * mode / size, root = sqrtf(beta * beta - angle * angle);
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
SCALE = 2 * float(np.i0(BETA)) * math.exp(-BETA) / WIDTH
AT_PLACE = 1 / float(np.i0(BETA))
module = cp.RawModule(code=source, options=(f"-DSCALE={SCALE!r}f", f"-DAT_PLACE={AT_PLACE!r}f"))
spread, combine = module.get_function("spread"), module.get_function("combine")


def ls_open(t, y, freqs, out):
    samples, count = t.size, freqs.size
    size = max(64, count)
    grid = cp.zeros((2, size), dtype=cp.complex64)
    numbers = np.int32(samples), np.int32(count), np.int32(size)
    spread(((2 * samples + 127) // 128,), (128,), (*numbers, np.float32(BETA), t, y, freqs, grid))
    sums = cp.fft.fft(grid, axis=1)
    combine(((count + 255) // 256,), (256,), (*numbers, np.float32(BETA), sums, out))

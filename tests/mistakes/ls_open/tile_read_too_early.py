# mistake: no barrier between the load of a tile and its use
# says: No `__syncthreads()` is between the two
# runs: simulator

import cupy as cp
import numpy as np

THREADS = 128  # of a block
STEPS = 16  # frequencies of a thread
TILE = 128  # samples in shared memory at a time

source = r"""
__device__ float power(float samples, float xc, float xs, float cc, float cs) {
    const float ss = samples - cc;  // cos² + sin² is 1
    float s, c;
    sincosf(0.5f * atan2f(2.0f * cs, cc - ss), &s, &c);
    const float both = 2.0f * c * s * cs, p = c * xc + s * xs, q = c * xs - s * xc;
    return 0.5f * (p * p / (c * c * cc + both + s * s * ss) + q * q / (c * c * ss - both + s * s * cc));
}

struct Sums { float xc[STEPS], xs[STEPS], cc[STEPS], cs[STEPS]; };  // of the frequencies of one thread

// One sample: its time, its value, the cosine and sine by which a thread turns to its next frequency.
__device__ void add(Sums& sums, float w, float4 sample) {
    float s, c;
    __sincosf(w * sample.x, &s, &c);
    for (int k = 0; k < STEPS; ++k) {
        sums.xc[k] += sample.y * c;
        sums.xs[k] += sample.y * s;
        sums.cc[k] += c * c;
        sums.cs[k] += c * s;
        const float next = c * sample.z - s * sample.w;
        s = s * sample.z + c * sample.w;
        c = next;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) rotate(
        const int samples, const int count, const float* __restrict__ t, const float* __restrict__ y,
        const float* __restrict__ freqs, float* __restrict__ out) {
    __shared__ float4 tile[TILE];
    const int first = blockIdx.x * THREADS * STEPS + threadIdx.x;
    const float w = freqs[min(first, count - 1)];
    const float turn = count > 1 ? THREADS * (freqs[1] - freqs[0]) : 0.0f;
    Sums sums = {};
    for (int begin = 0; begin < samples; begin += TILE) {
        __syncthreads();
        const int j = begin + threadIdx.x;
        if (j < samples) {
            float s, c;
            sincosf(turn * t[j], &s, &c);
            tile[threadIdx.x] = make_float4(t[j], y[j], c, s);
        }
        const int n = min(TILE, samples - begin);
        for (int k = 0; k < n; ++k) add(sums, w, tile[k]);
    }
    for (int k = 0; k < STEPS; ++k) {
        const int i = first + k * THREADS;
        if (i < count) out[i] = power(samples, sums.xc[k], sums.xs[k], sums.cc[k], sums.cs[k]);
    }
}
"""
options = (f"-DTHREADS={THREADS}", f"-DSTEPS={STEPS}", f"-DTILE={TILE}")
kernel = cp.RawKernel(source, "rotate", options)


def ls_open(t, y, freqs, out):
    blocks = -(-freqs.size // (THREADS * STEPS))
    kernel((blocks,), (THREADS,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))

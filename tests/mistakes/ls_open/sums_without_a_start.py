# mistake: the sums do not start at 0
# says: it begins with whatever was in memory
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
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        sums.xc[k] += sample.y * c;
        sums.xs[k] += sample.y * s;
        sums.cc[k] += c * c;
        sums.cs[k] += c * s;
        const float turned = c * sample.z - s * sample.w;
        s = s * sample.z + c * sample.w;
        c = turned;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) rotate(
        const int samples, const int count, const float* __restrict__ t, const float* __restrict__ y,
        const float* __restrict__ freqs, float* __restrict__ out) {
    __shared__ float4 tile[TILE];
    const float spacing = count > 1 ? freqs[1] - freqs[0] : 0.0f;
    const float d = THREADS * spacing;
    const int first = blockIdx.x * THREADS * STEPS + threadIdx.x;
    const float w = freqs[0] + first * spacing;
    Sums sums;
    for (int begin = 0; begin < samples; begin += TILE) {
        __syncthreads();
        for (int i = threadIdx.x; i < TILE && begin + i < samples; i += THREADS) {
            float s, c;
            sincosf(d * t[begin + i], &s, &c);
            tile[i] = make_float4(t[begin + i], y[begin + i], c, s);
        }
        __syncthreads();
        const int full = min(TILE, samples - begin);
        for (int j = 0; j < full; j++) add(sums, w, tile[j]);
    }
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        const int i = first + k * THREADS;
        if (i < count) out[i] = power(samples, sums.xc[k], sums.xs[k], sums.cc[k], sums.cs[k]);
    }
}
"""
options = (f"-DTHREADS={THREADS}", f"-DSTEPS={STEPS}", f"-DTILE={TILE}")
kernel = cp.RawKernel(source, "rotate", options)


def ls_open(t, y, freqs, out):
    per_block = THREADS * STEPS
    blocks = (freqs.size + per_block - 1) // per_block
    kernel((blocks,), (THREADS,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))

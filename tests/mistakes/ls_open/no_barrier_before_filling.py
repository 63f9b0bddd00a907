# mistake: the tile is overwritten while other threads still read it; both are loops over `j`
# says: A loop fills `tile` and other threads read it there, but the loop has only one barrier.
# runs: simulator
import cupy as cp
import numpy as np

THREADS = 128  # of a block
STEPS = 16  # frequencies of a thread
TILE = 128  # samples in shared memory at a time

source = r"""
__device__ float power(float samples, float xc, float xs, float cc, float cs) {
    const float ss = samples - cc;  // cos2 + sin2 is 1
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
    const float w = first < count ? freqs[first] : 0.0f;
    const float d = count > 1 ? (freqs[1] - freqs[0]) * THREADS : 0.0f;
    Sums sums = {};
    for (int start = 0; start < samples; start += TILE) {
        const int here = min(TILE, samples - start);
        for (int j = threadIdx.x; j < here; j += THREADS) {
            float s, c;
            sincosf(d * t[start + j], &s, &c);
            tile[j] = make_float4(t[start + j], y[start + j], c, s);
        }
        __syncthreads();
        for (int j = 0; j < here; ++j) add(sums, w, tile[j]);
    }
#pragma unroll
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

# slow: an accurate sine and cosine for every pair of a sample and a frequency, where a rotation would do
# cause: slow sines
import cupy as cp
import numpy as np

THREADS = 128  # of a block
TILE = 128  # samples in shared memory at a time

source = r"""
extern "C" __global__ void __launch_bounds__(THREADS) direct(
        const int samples, const int count, const float* __restrict__ t, const float* __restrict__ y,
        const float* __restrict__ freqs, float* __restrict__ out) {
    __shared__ float2 tile[TILE];
    const int i = blockIdx.x * THREADS + threadIdx.x;
    const float w = freqs[min(i, count - 1)];
    float xc = 0.0f, xs = 0.0f, cc = 0.0f, cs = 0.0f;
    for (int begin = 0; begin < samples; begin += TILE) {
        const int held = min(TILE, samples - begin);
        __syncthreads();
        for (int j = threadIdx.x; j < held; j += THREADS) tile[j] = make_float2(t[begin + j], y[begin + j]);
        __syncthreads();
        for (int j = 0; j < held; ++j) {
            const float2 sample = tile[j];
            float s, c;
            sincosf(w * sample.x, &s, &c);
            xc += sample.y * c;
            xs += sample.y * s;
            cc += c * c;
            cs += c * s;
        }
    }
    if (i >= count) return;
    const float ss = samples - cc;  // cos² + sin² is 1
    float s, c;
    sincosf(0.5f * atan2f(2.0f * cs, cc - ss), &s, &c);
    const float both = 2.0f * c * s * cs, p = c * xc + s * xs, q = c * xs - s * xc;
    out[i] = 0.5f * (p * p / (c * c * cc + both + s * s * ss) + q * q / (c * c * ss - both + s * s * cc));
}
"""
kernel = cp.RawKernel(source, "direct", (f"-DTHREADS={THREADS}", f"-DTILE={TILE}"))


def ls_open(t, y, freqs, out):
    blocks = -(-freqs.size // THREADS)
    kernel((blocks,), (THREADS,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))

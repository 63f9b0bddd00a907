# mistake: a recurrence from the two steps before, over all frequencies
# says: The error grows from one end of the band to the other: each step of a rotation loses some accuracy, and a
#     two-step recurrence loses more. Take fewer steps, then start again with a sine and a cosine.
# on_gpu: were stopped
# runs: simulator

import cupy as cp
import numpy as np

source = r"""
extern "C" __global__ void lombscargle(const int samples, const int count, const int steps, const float* t,
                                       const float* y, const float* freqs, float* out, float* sums) {
    const int begin = (blockIdx.x * blockDim.x + threadIdx.x) * steps, end = min(begin + steps, count);
    if (begin >= count) return;
    const float spacing = count > 1 ? freqs[1] - freqs[0] : 0.0f, w = freqs[begin];
    for (int k = 4 * begin; k < 4 * end; ++k) sums[k] = 0.0f;
    for (int j = 0; j < samples; ++j) {
        const float turn = 2.0f * cosf(spacing * t[j]);
        float c = cosf(w * t[j]), s = sinf(w * t[j]);
        float before_c = cosf(w * t[j] - spacing * t[j]), before_s = sinf(w * t[j] - spacing * t[j]);
        for (int k = begin; k < end; ++k) {
            sums[4 * k] += y[j] * c;
            sums[4 * k + 1] += y[j] * s;
            sums[4 * k + 2] += c * c;
            sums[4 * k + 3] += c * s;
            const float next_c = turn * c - before_c, next_s = turn * s - before_s;
            before_c = c, before_s = s, c = next_c, s = next_s;
        }
    }
    for (int k = begin; k < end; ++k) {
        const float xc = sums[4 * k], xs = sums[4 * k + 1], cc = sums[4 * k + 2], cs = sums[4 * k + 3];
        const float ss = samples - cc, angle = 0.5f * atan2f(2.0f * cs, cc - ss), c = cosf(angle), s = sinf(angle);
        const float p = c * xc + s * xs, q = c * xs - s * xc, both = 2.0f * c * s * cs;
        out[k] = 0.5f * (p * p / (c * c * cc + both + s * s * ss) + q * q / (c * c * ss - both + s * s * cc));
    }
}
"""
kernel = cp.RawKernel(source, "lombscargle")
STEPS = 1 << 20


def ls_open(t, y, freqs, out):
    sums = cp.empty(4 * freqs.size, dtype=cp.float32)
    threads = -(-freqs.size // STEPS)
    kernel(
        (-(-threads // 64),), (64,), (np.int32(t.size), np.int32(freqs.size), np.int32(STEPS), t, y, freqs, out, sums)
    )

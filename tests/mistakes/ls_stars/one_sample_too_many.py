# mistake: the loop takes the first sample of the next star
# says: Each star also has the first sample of the next one
# runs: simulator

import cupy as cp
import numpy as np

source = r"""
extern "C" __global__ void stars(const int count, const float* __restrict__ t, const float* __restrict__ y,
                                 const int* __restrict__ offsets, const float* __restrict__ freqs,
                                 float* __restrict__ out) {
    const int star = blockIdx.y, i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int first = offsets[star], last = offsets[star + 1] + 1;
    const float w = freqs[i];
    float xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
    for (int j = first; j < last; ++j) {
        const float c = cosf(w * t[j]), s = sinf(w * t[j]);
        xc += y[j] * c;
        xs += y[j] * s;
        cc += c * c;
        ss += s * s;
        cs += c * s;
    }
    const float angle = 0.5f * atan2f(2.0f * cs, cc - ss), c = cosf(angle), s = sinf(angle), mixed = 2.0f * c * s * cs;
    const float along = c * xc + s * xs, across = c * xs - s * xc;
    const float power = 0.5f * (along * along / (c * c * cc + mixed + s * s * ss)
                              + across * across / (c * c * ss - mixed + s * s * cc));
    out[(size_t)star * count + i] = last - first < 3 ? 0.0f : power;
}
"""
kernel = cp.RawKernel(source, "stars")


def ls_stars(t, y, offsets, freqs, out):
    stars, count = out.shape
    kernel((-(-count // 128), stars), (128,), (np.int32(count), t, y, offsets, freqs, out))

# mistake: each star's loop starts at sample 0
# says: those of star s begin at `offsets[s]`
# runs: anywhere
import cupy as cp
import numpy as np

source = r"""
extern "C" __global__ void stars(const int count, const float* __restrict__ t, const float* __restrict__ y,
                                 const int* __restrict__ offsets, const float* __restrict__ freqs,
                                 float* __restrict__ out) {
    const int star = blockIdx.y;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int begin = offsets[star], end = offsets[star + 1];
    if (end - begin < 3) {
        out[star * (long long)count + i] = 0.0f;
        return;
    }
    const float w = freqs[i];
    float xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
    for (int j = 0; j < end - begin; ++j) {
        float s, c;
        sincosf(w * t[j], &s, &c);
        xc += y[j] * c;
        xs += y[j] * s;
        cc += c * c;
        ss += s * s;
        cs += c * s;
    }
    float s, c;
    sincosf(0.5f * atan2f(2.0f * cs, cc - ss), &s, &c);
    const float p = c * xc + s * xs, q = c * xs - s * xc, both = 2.0f * c * s * cs;
    out[star * (long long)count + i] =
        0.5f * (p * p / (c * c * cc + both + s * s * ss) + q * q / (c * c * ss - both + s * s * cc));
}
"""
kernel = cp.RawKernel(source, "stars")


def ls_stars(t, y, offsets, freqs, out):
    stars, count = out.shape
    kernel((-(-count // 128), stars), (128,), (np.int32(count), t, y, offsets, freqs, out))

# slow: the phase is computed and reduced in double precision before the fast sines
# cause: double precision
# blind: missed
import cupy as cp
import numpy as np

kernel = cp.RawKernel(
    r"""
__device__ __forceinline__ void turn(float w, float t, float* s, float* c) {
    const double two_pi = 6.283185307179586;
    double phase = (double)w * t;
    phase -= two_pi * rint(phase / two_pi);
    *s = __sinf((float)phase);
    *c = __cosf((float)phase);
}

extern "C" __global__ void careful(int n, int m, const float* __restrict__ t, const float* __restrict__ y,
                                   const float* __restrict__ freqs, float* __restrict__ out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m) return;
    const float w = freqs[i];
    float xc = 0.0f, xs = 0.0f, cc = 0.0f, cs = 0.0f;
    for (int j = 0; j < n; ++j) {
        float s, c;
        turn(w, t[j], &s, &c);
        xc += y[j] * c;
        xs += y[j] * s;
        cc += c * c;
        cs += c * s;
    }
    const float ss = (float)n - cc;
    const float angle = 0.5f * atan2f(2.0f * cs, cc - ss);
    const float c = cosf(angle), s = sinf(angle), mixed = 2.0f * c * s * cs;
    const float p = c * xc + s * xs, q = c * xs - s * xc;
    out[i] = 0.5f * (p * p / (c * c * cc + mixed + s * s * ss) + q * q / (c * c * ss - mixed + s * s * cc));
}
""",
    "careful",
)


def ls_open(t, y, freqs, out):
    kernel((-(-freqs.size // 256),), (256,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))

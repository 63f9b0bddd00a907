# right: a raw kernel without a rotation: a grid-stride loop, and one call for sine and cosine
# runs: anywhere

import cupy as cp

kernel = cp.RawKernel(
    r"""
extern "C" __global__ void ls(const float* t, const float* y, const float* f, float* out, int n, int m) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < m; i += gridDim.x * blockDim.x) {
        float xc = 0, xs = 0, cc = 0, ss = 0, cs = 0, c, s;
        for (int j = 0; j < n; ++j) {
            sincosf(f[i] * t[j], &s, &c);
            xc += y[j] * c; xs += y[j] * s; cc += c * c; ss += s * s; cs += c * s;
        }
        sincosf(0.5f * atan2f(2 * cs, cc - ss), &s, &c);
        float p = c * xc + s * xs, q = c * xs - s * xc, b = 2 * c * s * cs;
        out[i] = 0.5f * (p * p / (c * c * cc + b + s * s * ss) + q * q / (c * c * ss - b + s * s * cc));
    }
}
""",
    "ls",
)


def ls_open(t, y, freqs, out):
    kernel((80,), (128,), (t, y, freqs, out, cp.int32(t.size), cp.int32(freqs.size)))

# slow: in each warp, even threads sum cosines and odd threads sum sines, one after the other
# cause: divergence
# blind: missed
import cupy as cp
import numpy as np

code = r"""
extern "C" __global__ void two_threads(int n, int m, const float* __restrict__ t, const float* __restrict__ y,
                                       const float* __restrict__ freqs, float* __restrict__ out) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x, i = thread / 2;
    const float w = freqs[min(i, m - 1)];
    float with_y = 0, second = 0;
    if (threadIdx.x % 2 == 0) {
        for (int j = 0; j < n; ++j) {  // Xc and the sum of cos²
            const float c = cosf(w * t[j]);
            with_y += y[j] * c;
            second += c * c;
        }
    } else {
        for (int j = 0; j < n; ++j) {  // Xs and the sum of sin cos
            const float phase = w * t[j], s = sinf(phase);
            with_y += y[j] * s;
            second += s * cosf(phase);
        }
    }
    const float xs = __shfl_xor_sync(0xffffffffu, with_y, 1), cs = __shfl_xor_sync(0xffffffffu, second, 1);
    if (threadIdx.x % 2 == 0 && i < m) {
        const float xc = with_y, cc = second, ss = n - second;
        const float angle = 0.5f * atan2f(2.0f * cs, cc - ss);
        const float c = cosf(angle), s = sinf(angle), mixed = 2.0f * c * s * cs;
        const float p = c * xc + s * xs, q = c * xs - s * xc;
        out[i] = 0.5f * (p * p / (c * c * cc + mixed + s * s * ss) + q * q / (c * c * ss - mixed + s * s * cc));
    }
}
"""
kernel = cp.RawModule(code=code, options=("--use_fast_math",)).get_function("two_threads")


def ls_open(t, y, freqs, out):
    n, m = np.int32(t.size), np.int32(freqs.size)
    kernel(((2 * freqs.size + 127) // 128,), (128,), (n, m, t, y, freqs, out))

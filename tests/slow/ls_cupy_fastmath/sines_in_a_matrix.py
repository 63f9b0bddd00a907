# slow: one kernel writes the sine and cosine of each pair to memory, and a second one reads them for the sums
# cause: extra traffic
# blind: missed
import cupy as cp
import numpy as np

AT_ONCE = 65_536  # frequencies

code = r"""
template <typename T> __device__ void both(T phase, T* s, T* c);
template <> __device__ void both<float>(float phase, float* s, float* c) { *s = sinf(phase); *c = cosf(phase); }
template <> __device__ void both<double>(double phase, double* s, double* c) { *s = sin(phase); *c = cos(phase); }

template <typename T> __device__ void tables(int n, int from, int to, const T* t, const T* w, T* sines, T* cosines) {
    const int i = from + blockIdx.x * blockDim.x + threadIdx.x, width = to - from;
    if (i >= to) return;
    for (int j = blockIdx.y; j < n; j += gridDim.y) {
        const size_t at = (size_t)j * width + (i - from);
        both<T>(w[i] * t[j], sines + at, cosines + at);
    }
}

template <typename T> __device__ void sums(int n, int from, int to, const T* y, const T* sines, const T* cosines,
                                           T* out) {
    const int i = from + blockIdx.x * blockDim.x + threadIdx.x, width = to - from;
    if (i >= to) return;
    T xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
    for (int j = 0; j < n; ++j) {
        const size_t at = (size_t)j * width + (i - from);
        const T c = cosines[at], s = sines[at];
        xc += y[j] * c;
        xs += y[j] * s;
        cc += c * c;
        ss += s * s;
        cs += c * s;
    }
    T s, c;
    both<T>(atan2(2 * cs, cc - ss) / 2, &s, &c);
    const T mixed = 2 * c * s * cs, a = c * xc + s * xs, b = c * xs - s * xc;
    out[i] = (a * a / (c * c * cc + mixed + s * s * ss) + b * b / (c * c * ss - mixed + s * s * cc)) / 2;
}

#define BOTH_KERNELS(T) \
extern "C" __global__ void tables_##T(int n, int from, int to, const T* t, const T* w, T* sines, T* cosines) { \
    tables<T>(n, from, to, t, w, sines, cosines); } \
extern "C" __global__ void sums_##T(int n, int from, int to, const T* y, const T* sines, const T* cosines, T* out) { \
    sums<T>(n, from, to, y, sines, cosines, out); }

BOTH_KERNELS(float)
BOTH_KERNELS(double)
"""
ready = {}


def ls_cupy_fastmath(t, y, freqs, out):
    if out.dtype not in ready:
        module = cp.RawModule(code=code, options=("--use_fast_math",))
        name = "float" if out.dtype == np.float32 else "double"
        ready[out.dtype] = module.get_function(f"tables_{name}"), module.get_function(f"sums_{name}")
    tables, sums = ready[out.dtype]
    n, m = t.size, freqs.size
    sines = cp.empty(n * min(m, AT_ONCE), dtype=out.dtype)
    cosines = cp.empty_like(sines)
    for start in range(0, m, AT_ONCE):
        stop = min(start + AT_ONCE, m)
        blocks = (stop - start + 127) // 128
        sizes = np.int32(n), np.int32(start), np.int32(stop)
        tables((blocks, 8), (128,), (*sizes, t, freqs, sines, cosines))
        sums((blocks,), (128,), (*sizes, y, sines, cosines, out))

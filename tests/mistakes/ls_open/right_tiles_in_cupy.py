# right: a RawModule template with a tile of samples in shared memory, chosen by the type, launched with shared_mem
# runs: anywhere

import cupy as cp

code = r"""
template <typename T>
struct Sums {
    T xc = 0, xs = 0, cc = 0, cs = 0;
    __device__ __forceinline__ void add(T y, T s, T c) { xc += y * c, xs += y * s, cc += c * c, cs += c * s; }
};

template <typename T, int TILE>
__global__ void periodogram(const T* __restrict__ t, const T* __restrict__ y, const T* __restrict__ w,
                            T* __restrict__ out, const int n, const int m) {
    extern __shared__ __align__(16) unsigned char memory[];
    T* times = reinterpret_cast<T*>(memory);
    T* values = times + TILE;
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    const T omega = k < m ? w[k] : T(0);
    Sums<T> sums;
    for (int first = 0; first < n; first += TILE) {
        __syncthreads();
        for (int i = threadIdx.x; i < TILE && first + i < n; i += blockDim.x) {
            times[i] = t[first + i];
            values[i] = y[first + i];
        }
        __syncthreads();
        const int count = min(TILE, n - first);
        for (int i = 0; i < count; ++i) {
            T s, c;
            sincos(omega * times[i], &s, &c);
            sums.add(values[i], s, c);
        }
    }
    if (k >= m) return;
    const T ss = T(n) - sums.cc;
    T s, c;
    sincos(T(0.5) * atan2(2 * sums.cs, sums.cc - ss), &s, &c);
    const T a = c * sums.xc + s * sums.xs, b = c * sums.xs - s * sums.xc;
    const T p = c * c * sums.cc + 2 * c * s * sums.cs + s * s * ss, q = T(n) - p;
    out[k] = T(0.5) * (a * a / p + b * b / q);
}
"""
TILE = 128
names = {kind: f"periodogram<{kind}, {TILE}>" for kind in ("float", "double")}
module = cp.RawModule(code=code, options=("-std=c++17",), name_expressions=list(names.values()))


def ls_open(t, y, freqs, out):
    kernel = module.get_function(names["float" if out.dtype == cp.float32 else "double"])
    threads = 64
    blocks = (freqs.size + threads - 1) // threads
    arguments = (t, y, freqs, out, cp.int32(t.size), cp.int32(freqs.size))
    kernel((blocks,), (threads,), arguments, shared_mem=2 * TILE * out.itemsize)

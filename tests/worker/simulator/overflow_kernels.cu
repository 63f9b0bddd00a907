// Integers that do not fit in their types, which a GPU does not report, and those that wrap around on purpose. The
// argument n is 65536.

#define RUN(name, launch) \
    extern "C" void run_##name(float* x, float* out, int n) { launch; }

__global__ void product(float* out, int n) { out[threadIdx.x] = n * n; }  // LINE product
RUN(product, (product<<<1, 32>>>(out, n)))

__global__ void sum(float* out, int n) {
    int total = 0;
    for (int i = 0; i < n; ++i) total += n;  // LINE sum
    out[threadIdx.x] = total;
}
RUN(sum, (sum<<<1, 1>>>(out, n)))

__global__ void difference(float* out, int n) { out[threadIdx.x] = -2147483647 - n; }  // LINE difference
RUN(difference, (difference<<<1, 32>>>(out, n)))

__device__ int total;
__global__ void atomic(int n) { atomicAdd(&total, n << 10); }  // LINE atomic
RUN(atomic, (atomic<<<1, 64>>>(n)))

__global__ void block(float* out, int n) {
    long long begin = 1 + (n << 14) * blockIdx.x;  // LINE block
    if (threadIdx.x == 0) out[blockIdx.x] = begin;
}
RUN(block, (block<<<5, 32>>>(out, n)))

#define SMALLER(a, b) ((a) < (b) ? (a) : (b))
struct Sizes {
    static const int tile = 32;
};
template <class T>
struct Scaled {
    T x;
};
template <class S, class T>
__device__ Scaled<T> operator*(S scale, Scaled<T> of) { return {T(scale * of.x)}; }

__global__ void wraps(float* out, int n) {
    const unsigned seed = blockIdx.x * 2654435769u + threadIdx.x * 1664525u + n;
    unsigned hash = (seed ^ (seed >> 16)) * 0x45d9f3bu;
    const unsigned size = n;
    hash += size * size - 1u - hash;
    hash += blockIdx.x * 1073741824;
    hash += blockIdx.x * (size << 14);
    const signed char low = n - 1;
    const short half = n / 2;
    const int back = blockIdx.x * -n;
    const long long wide = (long long)n * n + (long long)blockIdx.x * (n << 14) + size_t(n) * blockIdx.x;
    const unsigned begin = SMALLER(blockIdx.x * Sizes::tile, size);  // as a macro's argument
    const Scaled<float> scaled = blockIdx.x * Scaled<float>{2};
    int unset;
    __shared__ int unwritten;
    out[blockIdx.x] = unset * n + unwritten * n;
    out[blockIdx.x] = hash + low + half + back + wide + begin + scaled.x + atomicAdd(reinterpret_cast<unsigned*>(&total), 4000000000u);
}
extern "C" void run_wraps(float* x, float* out, int n) {
    volatile int of_the_host = n;
    of_the_host = of_the_host * n;
    wraps<<<8, 1>>>(out, n);
}

__global__ void outside(float* x, float* out, int n) { out[0] = x[n * (n / 2)]; }  // LINE outside
extern "C" void run_outside(float* x, float* out, int n) { outside<<<1, 1>>>(x, out, n); }

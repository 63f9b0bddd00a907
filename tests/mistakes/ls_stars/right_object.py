# right: an object that is called, and a block per power that reduces in shared memory
# runs: anywhere

import cupy as cp

source = r"""
template <unsigned N> __device__ void tree(float (*sums)[N]) {
    for (unsigned half = N / 2; half > 0; half >>= 1) {
        __syncthreads();
        if (threadIdx.x < half)
            for (int k = 0; k < 5; ++k) sums[k][threadIdx.x] += sums[k][threadIdx.x + half];
    }
    __syncthreads();
}
extern "C" __global__ void block_per_power(
        const float* t, const float* y, const int* offsets, const float* freqs, float* out, int count) {
    constexpr unsigned N = 64;
    static_assert((N & (N - 1)) == 0, "a power of two");
    __shared__ float sums[5][N];
    const unsigned star = blockIdx.y, i = blockIdx.x;
    for (int k = 0; k < 5; ++k) sums[k][threadIdx.x] = 0.0f;
    const int last = offsets[star + 1];
    for (int j = offsets[star] + threadIdx.x; j < last; j += N) {
        float s, c;
        sincosf(freqs[i] * t[j], &s, &c);
        const float terms[] = {y[j] * c, y[j] * s, c * c, s * s, c * s};
        #pragma unroll
        for (int k = 0; k < 5; ++k) sums[k][threadIdx.x] += terms[k];
    }
    tree<N>(sums);
    if (threadIdx.x != 0) return;
    const float xc = sums[0][0], xs = sums[1][0], cc = sums[2][0], ss = sums[3][0], cs = sums[4][0];
    const float angle = 0.5f * atan2f(2.0f * cs, cc - ss), c = cosf(angle), s = sinf(angle), mixed = 2.0f * c * s * cs;
    const float p = c * xc + s * xs, q = c * xs - s * xc;
    out[star * (size_t)count + i] = last - offsets[star] <= 2 ? 0.0f
        : 0.5f * (p * p / (c * c * cc + mixed + s * s * ss) + q * q / (c * c * ss - mixed + s * s * cc));
}
"""


class Search:
    """Stars by frequencies, a block for each power."""

    def __init__(self) -> None:
        self.kernel = cp.RawKernel(source, "block_per_power")

    def __call__(self, t, y, offsets, freqs, out) -> None:
        stars, count = out.shape
        self.kernel(grid=(count, stars, 1), block=(64, 1, 1), args=(t, y, offsets, freqs, out, cp.int32(count)))


ls_stars = Search()

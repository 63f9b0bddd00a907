# right: few frequencies are computed, and the sums at all others are interpolated between them
# runs: anywhere

import cupy as cp
import numpy as np

MOST = 2048  # frequencies that are computed; if more are needed, each output has its own sums
THREADS = 128

source = r"""
#define THREADS 128
#define POINTS 8  // of the polynomial
#define FINER 8  // computed frequencies per turn over twice the span: the polynomial's error is below a millionth

struct Span { double middle, spacing; int needed; };

// The sums are smooth in the frequency: a sample at distance d from the middle contributes waves of length pi / d.
__device__ Span span_of(const int samples, const int count, const float* t, const float* freqs) {
    Span span;
    const double length = (double)t[samples - 1] - t[0], band = (double)freqs[count - 1] - freqs[0];
    span.middle = 0.5 * ((double)t[0] + t[samples - 1]);
    span.spacing = 3.141592653589793 / (FINER * (length > 1e-30 ? length : 1e-30));
    const double points = band / span.spacing + POINTS + 1;
    span.needed = points < MOST && points < count ? (int)points : 0;
    return span;
}

__device__ float4 sums_at(const double w, const double middle, const int first, const int step, const int samples,
                          const float* t, const float* y) {
    float4 sums = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int j = first; j < samples; j += step) {
        const double turns = w * ((double)t[j] - middle) * 0.15915494309189535;
        float s, c;
        sincospif(2.0f * (float)(turns - rint(turns)), &s, &c);
        sums.x += y[j] * c;
        sums.y += y[j] * s;
        sums.z += c * c - s * s;  // the cosine and sine of twice the angle
        sums.w += 2.0f * s * c;
    }
    return sums;
}

extern "C" __global__ void compute(const int samples, const int count, const float* t, const float* y,
                                   const float* freqs, float4* table) {
    __shared__ float4 held[THREADS];
    const Span span = span_of(samples, count, t, freqs);
    if (blockIdx.x >= span.needed) return;
    const double w = freqs[0] + ((int)blockIdx.x - POINTS / 2 + 1) * span.spacing;
    held[threadIdx.x] = sums_at(w, span.middle, threadIdx.x, THREADS, samples, t, y);
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            held[threadIdx.x].x += held[threadIdx.x + half].x;
            held[threadIdx.x].y += held[threadIdx.x + half].y;
            held[threadIdx.x].z += held[threadIdx.x + half].z;
            held[threadIdx.x].w += held[threadIdx.x + half].w;
        }
    }
    if (threadIdx.x == 0) table[blockIdx.x] = held[0];
}

// The polynomial through POINTS neighbours, by Lagrange's formula. `at` is between the middle two, 0 to 1.
__device__ float4 interpolated(const float4* table, const float at) {
    float before[POINTS], after[POINTS];
    before[0] = after[POINTS - 1] = 1.0f;
    #pragma unroll
    for (int k = 1; k < POINTS; k++) {
        before[k] = before[k - 1] * (at + POINTS / 2 - k);
        after[POINTS - 1 - k] = after[POINTS - k] * (at + POINTS / 2 - 1 - (POINTS - k));
    }
    float4 sums = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float divisor = -5040.0f;  // of the first point: (0 - 1) (0 - 2) … (0 - 7)
    #pragma unroll
    for (int k = 0; k < POINTS; k++) {
        const float weight = before[k] * after[k] / divisor;
        const float4 point = table[k];
        sums.x += weight * point.x;
        sums.y += weight * point.y;
        sums.z += weight * point.z;
        sums.w += weight * point.w;
        divisor *= (k + 1.0f) / (k - 7.0f);
    }
    return sums;
}

extern "C" __global__ void combine(const int samples, const int count, const float* t, const float* y,
                                   const float* freqs, const float4* table, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const Span span = span_of(samples, count, t, freqs);
    float4 sums;
    if (span.needed) {
        const double place = ((double)freqs[i] - freqs[0]) / span.spacing;
        const int low = min((int)place, span.needed - POINTS);
        sums = interpolated(table + low, (float)(place - low));
    } else {
        sums = sums_at(freqs[i], span.middle, 0, 1, samples, t, y);
    }
    const float cc = 0.5f * (samples + sums.z), ss = 0.5f * (samples - sums.z), cs = 0.5f * sums.w;
    float s, c;
    sincosf(0.5f * atan2f(2 * cs, cc - ss), &s, &c);
    const float both = 2 * c * s * cs, p = c * sums.x + s * sums.y, q = c * sums.y - s * sums.x;
    out[i] = 0.5f * (p * p / (c * c * cc + both + s * s * ss) + q * q / (c * c * ss - both + s * s * cc));
}
"""
module = cp.RawModule(code=source, options=(f"-DMOST={MOST}",))
compute, combine = module.get_function("compute"), module.get_function("combine")


def ls_open(t, y, freqs, out):
    samples, count = np.int32(t.size), np.int32(freqs.size)
    table = cp.empty((MOST, 4), dtype=cp.float32)
    compute((min(MOST, int(count)),), (THREADS,), (samples, count, t, y, freqs, table))
    combine(((int(count) + 255) // 256,), (256,), (samples, count, t, y, freqs, table, out))

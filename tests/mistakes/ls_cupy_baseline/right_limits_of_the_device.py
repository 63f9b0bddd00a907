# right: a grid sized by the limits of the device
# runs: anywhere

import cupy as cp

KERNEL = r"""
__device__ __forceinline__ %(T)s sq(%(T)s v) { return v * v; }
extern "C" __global__ void lombscargle(int n, int m, const %(T)s* t, const %(T)s* y, const %(T)s* freqs, %(T)s* out) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < m; i += gridDim.x * blockDim.x) {
        %(T)s w = freqs[i], a = 0, b = 0, c2 = 0, s2 = 0, mixed = 0;
        for (int j = 0; j < n; j++) {
            %(T)s s = sin(t[j] * w), c = cos(t[j] * w);
            a += y[j] * c; b += y[j] * s; c2 += sq(c); s2 += sq(s); mixed += s * c;
        }
        %(T)s tau = atan2(2 * mixed, c2 - s2) / (2 * w), s = sin(w * tau), c = cos(w * tau);
        out[i] = 0.5 * (sq(c * a + s * b) / (sq(c) * c2 + 2 * c * s * mixed + sq(s) * s2)
                        + sq(c * b - s * a) / (sq(c) * s2 - 2 * c * s * mixed + sq(s) * c2));
    }
}
"""
C_NAMES = {"float32": "float", "float64": "double"}


def ls_cupy_baseline(t, y, freqs, out):
    device = cp.cuda.Device()
    limits = device.attributes
    threads = min(128, limits["MaxBlockDimX"], limits["MaxThreadsPerBlock"])
    resident = limits["MaxThreadsPerMultiProcessor"] // threads
    blocks = min(max(20, resident) * limits["MultiProcessorCount"], limits["MaxGridDimX"])
    kernel = cp.RawModule(code=KERNEL % {"T": C_NAMES[str(out.dtype)]}, backend="nvrtc").get_function("lombscargle")
    kernel((blocks,), (threads,), (cp.int32(t.size), cp.int32(freqs.size), t, y, freqs, out))
    device.synchronize()

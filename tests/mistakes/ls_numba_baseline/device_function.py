# right: the power in a device function, one thread per frequency
# runs: anywhere
import math

from numba import cuda


@cuda.jit(device=True)
def power_of(w, xc, xs, cc, ss, cs):
    angle = 0.5 * math.atan2(2.0 * cs, cc - ss)
    c, s = math.cos(angle), math.sin(angle)
    first, second = c * xc + s * xs, c * xs - s * xc
    return 0.5 * (
        first**2 / (c * c * cc + 2 * c * s * cs + s * s * ss) + second**2 / (c * c * ss - 2 * c * s * cs + s * s * cc)
    )


@cuda.jit
def kernel(t, y, freqs, out):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i >= freqs.size:
        return
    xc, xs, cc, ss, cs = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(t.size):
        phase = freqs[i] * t[j]
        c = math.cos(phase)
        s = math.sin(phase)
        xc, xs = xc + y[j] * c, xs + y[j] * s
        cc, ss, cs = cc + c * c, ss + s * s, cs + c * s
    out[i] = power_of(freqs[i], xc, xs, cc, ss, cs)


def ls_numba_baseline(t, y, freqs, out):
    kernel[(freqs.size + 255) // 256, 256](t, y, freqs, out)

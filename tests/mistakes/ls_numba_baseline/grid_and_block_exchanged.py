# mistake: grid and block are exchanged at the launch
# says: are grid and block exchanged?
# on_gpu: block
# runs: anywhere
import math

from numba import cuda


@cuda.jit
def power_kernel(t, y, freqs, out):
    for i in range(cuda.grid(1), freqs.size, cuda.gridsize(1)):
        w = freqs[i]
        xc = xs = cc = ss = cs = 0.0
        for j in range(t.size):
            c = math.cos(w * t[j])
            s = math.sin(w * t[j])
            xc += y[j] * c
            xs += y[j] * s
            cc += c * c
            ss += s * s
            cs += c * s
        tau = math.atan2(2 * cs, cc - ss) / (2 * w)
        c = math.cos(w * tau)
        s = math.sin(w * tau)
        out[i] = 0.5 * (
            (c * xc + s * xs) ** 2 / (c * c * cc + 2 * c * s * cs + s * s * ss)
            + (c * xs - s * xc) ** 2 / (c * c * ss - 2 * c * s * cs + s * s * cc)
        )


def ls_numba_baseline(t, y, freqs, out):
    blocks = 20 * cuda.get_current_device().MULTIPROCESSOR_COUNT
    power_kernel[128, blocks](t, y, freqs, out)

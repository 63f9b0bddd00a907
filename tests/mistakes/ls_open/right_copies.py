# right: Numba, through pinned memory, a copy on the device, and another device array
# runs: anywhere
import math

import numpy as np
from numba import cuda


@cuda.jit(device=True)
def finish(w, xc, xs, cc, ss, cs):
    tau = math.atan2(2.0 * cs, cc - ss) / (2.0 * w)
    c = math.cos(w * tau)
    s = math.sin(w * tau)
    along = (c * xc + s * xs) ** 2 / (c * c * cc + 2.0 * c * s * cs + s * s * ss)
    across = (c * xs - s * xc) ** 2 / (c * c * ss - 2.0 * c * s * cs + s * s * cc)
    return 0.5 * (along + across)


@cuda.jit
def power(t, y, freqs, out):
    i = cuda.grid(1)
    if i < freqs.size:
        w = freqs[i]
        xc = 0.0
        xs = 0.0
        cc = 0.0
        ss = 0.0
        cs = 0.0
        for j in range(t.shape[0]):
            c = math.cos(w * t[j])
            s = math.sin(w * t[j])
            xc += y[j] * c
            xs += y[j] * s
            cc += c * c
            ss += s * s
            cs += c * s
        out[i] = finish(w, xc, xs, cc, ss, cs)


def ls_open(t, y, freqs, out):
    host = cuda.pinned_array(freqs.size, dtype=np.float32)
    freqs.copy_to_host(host)
    mine = cuda.to_device(host)
    result = cuda.device_array(out.size, dtype=np.float32)
    power[(out.size + 127) // 128, 128](t, y, mine, result)
    out.copy_to_device(result)

# right: Numba, sine and cosine at once by libdevice
# runs: anywhere
import math

from numba import cuda, float32
from numba.cuda import libdevice


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
        xc = xs = cc = ss = cs = float32(0)
        for j in range(t.size):
            s, c = libdevice.sincosf(w * t[j])
            xc += y[j] * c
            xs += y[j] * s
            cc += c * c
            ss += s * s
            cs += c * s
        out[i] = finish(w, xc, xs, cc, ss, cs)


def ls_open(t, y, freqs, out):
    power[(freqs.size + 127) // 128, 128](t, y, freqs, out)

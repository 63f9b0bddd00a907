# mistake: the values are passed before the times
# says: The times and the values are exchanged: the phase is `w * t[j]`, and the sums are of `y[j]`.
# runs: anywhere
import math

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


def ls_numba_baseline(t, y, freqs, out):
    power[(freqs.size + 127) // 128, 128](y, t, freqs, out)

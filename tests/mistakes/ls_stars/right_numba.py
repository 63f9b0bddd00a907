# right: in Numba, with a loop over the stars in each thread
# runs: anywhere
import math

from numba import cuda


@cuda.jit(fastmath=True)
def stars_kernel(t, y, offsets, freqs, out):
    i = cuda.grid(1)
    if i >= freqs.size:
        return
    for star in range(out.shape[0]):
        xc = xs = cc = ss = cs = 0.0
        for j in range(offsets[star], offsets[star + 1]):
            c, s = math.cos(freqs[i] * t[j]), math.sin(freqs[i] * t[j])
            xc += y[j] * c
            xs += y[j] * s
            cc += c * c
            ss += s * s
            cs += c * s
        if offsets[star + 1] - offsets[star] < 3:
            out[star, i] = 0.0
        else:
            angle = 0.5 * math.atan2(2.0 * cs, cc - ss)
            c, s = math.cos(angle), math.sin(angle)
            mixed = 2.0 * c * s * cs
            along, across = c * xc + s * xs, c * xs - s * xc
            out[star, i] = 0.5 * (
                along * along / (c * c * cc + mixed + s * s * ss) + across * across / (c * c * ss - mixed + s * s * cc)
            )


def ls_stars(t, y, offsets, freqs, out):
    stars_kernel[-(-freqs.size // 64), 64](t, y, offsets, freqs, out)

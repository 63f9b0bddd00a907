# mistake: w tau is multiplied by w once more
# says: this tau was never divided by it
# runs: anywhere

import numpy as np


def periodogram_numpy(t, y, freqs):
    phase = freqs[:, None] * t
    c, s = np.cos(phase), np.sin(phase)
    xc, xs = c @ y, s @ y
    C, S, D = (c * c).sum(axis=1), (s * s).sum(axis=1), (c * s).sum(axis=1)
    tau = np.arctan2(2 * D, C - S) / 2
    ct, st = np.cos(freqs * tau), np.sin(freqs * tau)
    both = 2 * ct * st * D
    return 0.5 * (
        (ct * xc + st * xs) ** 2 / (ct**2 * C + both + st**2 * S)
        + (ct * xs - st * xc) ** 2 / (ct**2 * S - both + st**2 * C)
    )

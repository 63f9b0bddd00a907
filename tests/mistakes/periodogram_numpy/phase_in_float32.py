# mistake: the phase is rounded to float32
# says: is part of the computation in lower precision
# runs: anywhere
import numpy as np


def periodogram_numpy(t, y, freqs):
    phase = (freqs[:, None] * t).astype(np.float32)
    c, s = np.cos(phase), np.sin(phase)
    xc, xs = (y * c).sum(axis=1), (y * s).sum(axis=1)
    cc, ss, cs = (c * c).sum(axis=1), (s * s).sum(axis=1), (c * s).sum(axis=1)
    tau = np.arctan2(2 * cs, cc - ss) / (2 * freqs)
    ct, st = np.cos(freqs * tau), np.sin(freqs * tau)
    return 0.5 * (
        (ct * xc + st * xs) ** 2 / (ct**2 * cc + 2 * ct * st * cs + st**2 * ss)
        + (ct * xs - st * xc) ** 2 / (ct**2 * ss - 2 * ct * st * cs + st**2 * cc)
    )

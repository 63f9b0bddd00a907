# mistake: tau is the angle of atan2, not divided by twice the frequency
# says: tau was not divided by `(2 * w)`
# runs: anywhere
import numpy as np


def periodogram_numpy(t, y, freqs):
    phase = freqs[:, None] * t
    cos, sin = np.cos(phase), np.sin(phase)
    xc, xs = cos @ y, sin @ y
    C = (cos**2).sum(axis=1)
    S = (sin**2).sum(axis=1)
    D = (cos * sin).sum(axis=1)
    tau = np.arctan2(2 * D, C - S)
    c, s = np.cos(freqs * tau), np.sin(freqs * tau)
    along = (c * xc + s * xs) ** 2 / (c**2 * C + 2 * c * s * D + s**2 * S)
    across = (c * xs - s * xc) ** 2 / (c**2 * S - 2 * c * s * D + s**2 * C)
    return 0.5 * (along + across)

# mistake: the sums with cosines and with sines are exchanged
# says: The sums of the cosines and of the sines are exchanged
# runs: anywhere

import numpy as np


def periodogram_numpy(t, y, freqs):
    phase = freqs[:, None] * t
    cosine, sine = np.cos(phase), np.sin(phase)
    xs, xc = cosine @ y, sine @ y
    cc, ss, cs = (cosine**2).sum(axis=1), (sine**2).sum(axis=1), (cosine * sine).sum(axis=1)
    angle = np.arctan2(2 * cs, cc - ss) / 2
    c, s = np.cos(angle), np.sin(angle)
    along = (c * xc + s * xs) ** 2 / (c**2 * cc + 2 * c * s * cs + s**2 * ss)
    across = (c * xs - s * xc) ** 2 / (c**2 * ss - 2 * c * s * cs + s**2 * cc)
    return (along + across) / 2

# mistake: the classical periodogram
# says: This is the classical periodogram
# runs: anywhere
import numpy as np


def periodogram_numpy(t, y, freqs):
    phase = freqs[:, None] * t
    cosine, sine = np.cos(phase), np.sin(phase)
    xc, xs = cosine @ y, sine @ y
    return (xc**2 + xs**2) / len(t)

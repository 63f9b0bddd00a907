# right: a loop over the frequencies, each over all samples at once
# runs: anywhere
import numpy as np


def periodogram_numpy(t, y, freqs):
    out = np.empty_like(freqs)
    for index, w in enumerate(freqs):
        tau = np.arctan2(np.sin(2 * w * t).sum(), np.cos(2 * w * t).sum()) / (2 * w)
        c, s = np.cos(w * (t - tau)), np.sin(w * (t - tau))
        out[index] = 0.5 * ((y @ c) ** 2 / (c @ c) + (y @ s) ** 2 / (s @ s))
    return out

# right: complex exponentials, and sums of the doubled phase
# runs: anywhere
import numpy as np


def periodogram_numpy(t, y, freqs):
    wave = np.exp(1j * np.outer(freqs, t))
    twice = (wave**2).sum(axis=1)
    turned = (wave @ y) * np.exp(-0.5j * np.angle(twice))
    along = turned.real**2 / (t.size + np.abs(twice))
    across = turned.imag**2 / (t.size - np.abs(twice))
    return along + across

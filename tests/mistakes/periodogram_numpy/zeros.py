# mistake: the output is zero everywhere
# says: The output is all zeros
# runs: anywhere

import numpy as np


def periodogram_numpy(t, y, freqs):
    return np.zeros(len(freqs))

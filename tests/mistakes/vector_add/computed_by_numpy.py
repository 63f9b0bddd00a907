# mistake: NumPy reads the tensors and adds them
# says: NumPy cannot read a tensor of the GPU.
# runs: anywhere
import numpy as np
import torch


def vector_add(x, y, out):
    out.copy_(torch.from_numpy(np.asarray(x) + np.asarray(y)))

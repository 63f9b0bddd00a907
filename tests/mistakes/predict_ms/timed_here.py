# mistake: it runs the operation and times it, whatever the machine that it is asked about
# says: The answer does not depend on `machine`: a machine that is twice as fast needs half the time.
# runs: anywhere
import time

import torch


def predict_ms(operation, machine):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = operation.get("shape", (operation.get("m"), operation.get("n")))
    x = torch.ones([min(side, 256) for side in shape], device=device)
    start = time.perf_counter()
    x + x
    return 1e3 * (time.perf_counter() - start)

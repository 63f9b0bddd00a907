# mistake: only the results are compared, with those of the same function
# says: Every benchmark was called sound. Half of them lie.
# runs: anywhere

import torch


def audit(benchmark, machine):
    return benchmark(torch.sin, torch.sin, lambda: torch.randn(1000), machine) > 0

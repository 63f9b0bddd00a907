# mistake: a spy is reused for a second benchmark, in which new tensors reuse freed memory
# says: An address identifies data only as long as you keep the tensor.
# runs: anywhere

import torch


def audit(benchmark, machine):
    made, faults, last = [], [], []

    def make_input():
        made.append(torch.randn(1000))
        return made[-1]

    def spy(seconds):
        mine = []

        def function(x):
            machine.run(seconds if mine else 20 * seconds)
            alike = [m for m in made if m.dtype == x.dtype and m.shape == x.shape]
            faults.append(not any(torch.equal(x, m) for m in alike) or not x.is_contiguous())
            faults.append(torch.is_autocast_enabled("cpu"))
            faults.append(x.data_ptr() in mine or last == [x.data_ptr()])
            mine.append(x.data_ptr())
            last[:] = [x.data_ptr()]
            return 2 * x

        return function

    calls = []

    def idle(x):
        calls.append(x)
        return 2 * x if len(calls) == 1 else torch.zeros_like(x)

    kernel, baseline = spy(0.001), spy(0.003)
    claims = [benchmark(kernel, baseline, make_input, machine) for _ in range(2)]
    lazy = benchmark(idle, baseline, make_input, machine)
    return not any(faults) and all(2.5 < claim < 3.5 for claim in claims) and lazy == 0

# mistake: the kernel that does nothing is wrong from its first call on
# says: checks only the first results was called sound (dead code)
# runs: anywhere

import torch


def audit(benchmark, machine):
    made, faults, touched = [], [], []

    def make_input():
        made.append(torch.randn(1000))
        return made[-1]

    def spy(seconds):
        mine = []

        def function(x):
            machine.run(seconds if mine else 20 * seconds)
            alike = [m for m in made if m.dtype == x.dtype and m.shape == x.shape]
            faults.append(not any(torch.equal(x, m) for m in alike))
            faults.append(not x.is_contiguous())
            faults.append(torch.is_autocast_enabled(x.device.type))
            faults.append(x.data_ptr() in mine or touched[-1:] == [x.data_ptr()])
            mine.append(x.data_ptr())
            touched.append(x.data_ptr())
            return 2 * x

        return function

    calls = []

    def idle(x):
        calls.append(x)
        return 2 * x if not calls else torch.zeros_like(x)

    claim = benchmark(spy(0.001), spy(0.003), make_input, machine)
    if any(faults) or not 2.5 < claim < 3.5:
        return False
    return benchmark(idle, spy(0.003), make_input, machine) == 0

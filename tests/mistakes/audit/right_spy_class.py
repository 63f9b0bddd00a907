# right: a spy that is an object, matrices as data, findings as a set of words
# runs: anywhere

import torch


class Spy:
    last = None

    def __init__(self, machine, seconds, made, findings):
        self.machine, self.seconds, self.made, self.findings = machine, seconds, made, findings
        self.had = set()

    def __call__(self, x):
        self.machine.run(self.seconds * (1 if self.had else 50))
        same = [m for m in self.made if m.shape == x.shape and m.dtype == x.dtype and bool((m == x).all())]
        if not same:
            self.findings.add("altered")
        elif same[0].stride() != x.stride():
            self.findings.add("with gaps")
        if torch.is_autocast_enabled(x.device.type):
            self.findings.add("autocast")
        if x.data_ptr() in self.had or x.data_ptr() == Spy.last:
            self.findings.add("hot")
        Spy.last = x.data_ptr()
        self.had.add(x.data_ptr())
        return x.clone()


def audit(benchmark, machine):
    made, findings = [], set()
    Spy.last = None

    def make_input():
        made.append(torch.rand(20, 30))
        return made[-1]

    slow, fast, other = (Spy(machine, seconds, made, findings) for seconds in (0.004, 0.001, 0.001))
    claim = benchmark(slow, fast, make_input, machine)
    if abs(claim - 0.25) > 0.05:
        findings.add("claim")
    if findings:
        return False
    works = [True]
    lazy = benchmark(lambda x: x.clone() if works and works.pop() else -x, other, make_input, machine)
    return lazy == 0

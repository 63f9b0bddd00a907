# right: one test after another, each in a separate call
# runs: anywhere

import itertools

import torch


def audit(benchmark, machine):
    probes = (claims_what_is_true, hands_out_what_was_made, keeps_data_cold, reads_results)
    return all(probe(benchmark, machine) for probe in probes)


def few_numbers():
    return torch.randn(256)


def takes(machine, seconds, diary):
    own = []

    def function(x):
        machine.run(seconds if own else 30 * seconds)
        own.append(x)
        diary.append((seconds, x, torch.is_autocast_enabled("cpu")))
        return x + 1

    return function


def diary_of(benchmark, machine):
    made, diary = [], []

    def make_input():
        made.append(few_numbers())
        return made[-1]

    benchmark(takes(machine, 5e-4, diary), takes(machine, 2e-3, diary), make_input, machine)
    return made, diary


def claims_what_is_true(benchmark, machine):
    claim = benchmark(takes(machine, 1e-3, []), takes(machine, 5e-3, []), few_numbers, machine)
    return abs(claim / 5 - 1) < 0.2


def hands_out_what_was_made(benchmark, machine):
    made, diary = diary_of(benchmark, machine)
    known = {(m.dtype, m.stride(), tuple(m.tolist())) for m in made}
    return all((x.dtype, x.stride(), tuple(x.tolist())) in known and not autocast for _, x, autocast in diary)


def keeps_data_cold(benchmark, machine):
    _, diary = diary_of(benchmark, machine)
    calls = [(seconds, x.data_ptr()) for seconds, x, _ in diary]
    neighbours = any(one[1] == other[1] for one, other in itertools.pairwise(calls))
    return len(set(calls)) == len(calls) and not neighbours


def reads_results(benchmark, machine):
    answers = iter([True])
    claim = benchmark(
        lambda x: x + 1 if next(answers, False) else torch.empty_like(x).fill_(7.0),
        takes(machine, 1e-3, []),
        few_numbers,
        machine,
    )
    return not claim

"""An exercise passes functions and objects to be used: tools that look inside them are noted, calls are not."""

import pytest

from grader.exercises import EXERCISES
from grader.judge import rules
from tests.judge.rule_snippets import snippets

# Each is the body of `time_gpu(function)`, with lines on top that have no blanks before them.
_APART = """
## getattr -> `getattr(function, '__closure__')`
    return getattr(function, '__closure__')
## getattr of a pair -> `getattr(*(function, 'func_name'))`
    return getattr(*(function, 'func_name'))
## getattr of a name that is built -> `getattr(function, '__clo' + part)`
    part = 'sure__'
    return getattr(function, '__clo' + part)
## getattr of a name that nobody knows -> `getattr(function, name)`
    for name in names(): getattr(function, name)
def names(): return open('names').read().split()
## getattr under another name -> `getattr`
    see = getattr
    return see(function, 'x')
## its closure -> `function.__closure__`
    return function.__closure__
## its globals -> `function.__globals__`
    return function.__globals__
## its code, in a helper -> `work.__code__`
    return helper(function)
def helper(work): return work.__code__
## its defaults, by a keyword -> `work.__defaults__`
    return helper(work=function)
def helper(work=None): return work.__defaults__
## itself, in a list -> `held[0].__self__`
    held = [function]
    return held[0].__self__
## itself, out of a dictionary -> `held.get('a').__self__`
    held = {'a': function}
    return held.get('a').__self__
## vars -> `vars`
    return vars(function)
## dir -> `dir`
    return dir(function)
## inspect -> `inspect.getclosurevars`
import inspect
    return inspect.getclosurevars(function)
## a part of inspect -> `inspect.unwrap`
from inspect import unwrap
    return unwrap(print)
## dis -> `dis.Bytecode`
import dis
    return dis.Bytecode(function)
## gc -> `gc.get_referents`
import gc
    return gc.get_referents(function)
## frames -> `sys._getframe`
import sys
    return sys._getframe(1)
## modules -> `sys.modules`
import sys
    return sys.modules
## attrgetter -> `operator.attrgetter`
import operator
    return operator.attrgetter('x')(function)
## object.__getattribute__ -> `object.__getattribute__`
    return object.__getattribute__(function, 'x')
## its class -> `function.__class__`
    return function.__class__
## copy -> `copy.copy`
import copy
    return copy.copy(function)
## pickle -> `pickle.dumps`
import pickle
    return pickle.dumps(function)
## marshal -> `marshal.dumps`
import marshal
    return marshal.dumps(function)
## another function of its code -> `types.FunctionType`
import types
    return types.FunctionType
## ctypes -> `ctypes.c_long`
import ctypes
    return ctypes.c_long
## builtins -> `__builtins__`
    return __builtins__
## eval -> `eval`
    return eval('function.x')
## exec of a text -> `exec`
    exec('x = function')
## globals -> `globals`
    return globals()
## import_module -> `importlib.import_module`
import importlib
    return importlib.import_module('grader.worker.harnesses.timed_work')
## an exception's frames -> `error.__traceback__`
    try: function(1)
    except TypeError as error: return error.__traceback__.tb_frame
## the exception that is handled -> `sys.exc_info`
import sys
    return sys.exc_info()
## a tracer -> `sys.settrace`
import sys
    sys.settrace(print)
## a profiler -> `sys.setprofile`
import sys
    sys.setprofile(print)
## monitoring -> `sys.monitoring.use_tool_id`
import sys
    sys.monitoring.use_tool_id(1, 'x')
## a pattern -> `__closure__`
    match print:
        case object(__closure__=cells): return cells
## a partial of something else -> `getattr`
from functools import partial
    return partial(getattr, function)('x')
## a map -> `getattr`
    return map(getattr, [function], ['x'])
## a metaclass -> `type`
    class Meta(type): pass
## getattr in a hint -> `getattr`
    def helper(work: getattr): return work
## a hint that names a type again -> `type`
    def helper(work: (kind := type)): return work
    return kind
## a hint that is a call -> `object`
    kept = []
    def helper(work: kept.append(object)): return work
    return kept[0]
## a pattern for anything -> `object`
    match function:
        case object(func=inner): return inner
## an attribute that is set -> `setattr(function, 'x', 1)`
    setattr(function, 'x', 1)
## the text of a name -> `__closure__`
    name = '__closure__'
## the method that a call runs -> `function.__call__`
    return function.__call__
## torch's own tools -> `torch._jit_internal.get_closure`
import torch
    return torch._jit_internal.get_closure(function)
## torch's own tools, imported -> `torch._jit_internal.get_closure`
from torch._jit_internal import get_closure
    return get_closure(function)
## the names of the code that runs -> `cProfile.Profile`
import cProfile
    return cProfile.Profile().runcall(function)
## a module by its name -> `pydoc.locate`
import pydoc
    return pydoc.locate('grader.worker.outputs')
## the lines that run -> `faulthandler.dump_traceback`
import faulthandler
    return faulthandler.dump_traceback(open('stack', 'w'))
## a template that is built -> `('{0.' + line + '}').format(function)`
    line = chr(95) * 2 + 'class' + chr(95) * 2
    return ('{0.' + line + '}').format(function)
## a template's method under another name -> `'{0._name}'.format`
    filled = '{0._name}'.format
    return filled(function)
## a template's method that is passed on -> `'{0._name}'.format`
    return list(map('{0._name}'.format, [function]))
## a formatter -> `string.Formatter`
import string
    return string.Formatter().get_field(open('names').read(), [function], {})
## how the next one is made -> `type(function).__init__`
    type(function).__init__ = print
## private of anything -> `torch_event()._at`
    return torch_event()._at
def torch_event(): return None
"""
_FINE = """
## called
    for _ in range(3): function()
## called by a name
    work = function
    work()
## called by a helper
    return median(function, 3)
def median(work, repeats, *more): return [work() for _ in range(repeats)]
## called by a helper that is chosen
    return [helper(function) for helper in (one, two)]
def one(work): return work()
def two(work): return work() or work()
## called by an object
    return Timed(function).run()
class Timed:
    def __init__(self, work, repeats=3): self.work, self._repeats = work, repeats
    def run(self): return [self.work() for _ in range(self._repeats)]
## called later
    later = lambda: function()
    later()
## called by a partial
from functools import partial
    partial(function)()
## among others
    works = [function] * 3
    works.append(function)
    for work in works: work()
    for a, b in zip([function], [print]): a(), b()
## asked for
    if function is None or not callable(function): return
    print(function)
## timeit
import timeit
    return timeit.timeit(function, number=10), timeit.repeat('function()', globals={'function': function})
## torch's timer
from torch.utils import benchmark
    return benchmark.Timer('function()', globals={'function': function}).blocked_autorange()
## Triton's timer
import triton
    return triton.testing.do_bench(function), triton.testing.do_bench(lambda: function())
## events
import torch
    with torch.profiler.profile() as profile: function()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record(), function(), end.record(), torch.cuda._sleep(100)
    return start.elapsed_time(end), getattr(torch, 'cuda')
## a template
    filled = "{:.1f}".format
    return TEMPLATE.format(function()), "{:.3f}".format(function()), filled(function())
TEMPLATE = "{:.3f} ms"
## a name that is set
    def timed(): return function()
    timed.__name__ = "timed"
    return timed()
## type hints
from collections.abc import Callable
from types import TracebackType
    held: Callable[[], object] = function
    return float(Timer(held).repeats)
class Timer(object):
    work: Callable[[], object]
    def __init__(self, work: Callable[[], object], repeats: int = 3) -> None: self.work, self.repeats = work, repeats
    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> object: pass
## results in a namespace, while no garbage is collected
import gc
from types import SimpleNamespace
    was = gc.isenabled()
    gc.disable()
    found = SimpleNamespace(times=[function() for _ in range(9)])
    if was: gc.enable()
    return found.times
## numbers of one's own
    class Box: _best = 1
    box = Box()
    box._best = min(box._best, 2)
    return f"{__name__} {box._best}"
"""


def _whole(lines):
    top = "".join(line for line in lines.splitlines(keepends=True) if line.startswith(("import", "from")))
    rest = [line for line in lines.splitlines(keepends=True) if not line.startswith(("import", "from"))]
    body = next((at for at, line in enumerate(rest) if not line.startswith("    ")), len(rest))
    return f"{top}def time_gpu(function):\n{''.join(rest[:body])}    return 1.0\n{''.join(rest[body:])}"


APART = {name: (_whole(lines), wanted) for name, (lines, wanted) in snippets(_APART).items()}
FINE = {name: _whole(lines) for name, (lines, _) in snippets(_FINE).items()}


def _sentences(source, exercise="time_gpu"):
    return [note.sentence for note in rules.of_source(source, EXERCISES[exercise])]


@pytest.mark.parametrize("name", APART)
def test_what_takes_it_apart_is_noted(name):
    """The line and the words of the source are named."""
    source, wanted = APART[name]
    assert any(wanted in sentence for sentence in _sentences(source)), _sentences(source)


@pytest.mark.parametrize("name", FINE)
def test_what_calls_it_is_not_noted(name):
    """Keeping it, passing it on and timing it are what the exercise asks for."""
    assert _sentences(FINE[name]) == []


_BENCHMARK = """
## what the machine hides -> `machine._streams`
    return machine._streams
## what the machine hides, by a name -> `getattr(machine, name)`
    return [getattr(machine, name) for name in open('names')]
## what the machine hides, by a template -> `'{0._streams}'.format(machine)`
    return '{0._streams}'.format(machine)
## a copy of the machine -> `copy.deepcopy`
import copy
    return copy.deepcopy(machine)
## the method's function -> `machine.run.__func__`
    return machine.run.__func__
"""
_AUDITS = """
## a machine that is passed on
    kernel = Spy(machine, 1.0)
    return benchmark(kernel, kernel, list, machine) > 1 and probe(benchmark, machine=machine)
class Spy:
    def __init__(self, machine, seconds): self.machine, self.seconds = machine, seconds
    def __call__(self, x): self.machine.run(self.seconds)
def probe(bench, machine): return bench(print, print, list, machine)
## a machine's methods
    before = machine.clock()
    with machine.stream(machine.Stream()): machine.run(1.0)
    run, event = machine.run, machine.Event()
    event.record(machine.current_stream())
    run(1.0), machine.synchronize()
    return float(machine.clock() - before) > 0 and getattr(machine, 'device', 'cpu') == 'cpu'
"""


def _audit(lines):
    return _whole(lines).replace("time_gpu(function)", "audit(benchmark, machine)")


@pytest.mark.parametrize("name", snippets(_BENCHMARK))
def test_a_benchmark_or_a_machine_that_is_taken_apart_is_noted(name):
    """Public methods of the machine may be used, and the benchmark be called."""
    lines, wanted = snippets(_BENCHMARK)[name]
    assert any(wanted in sentence for sentence in _sentences(_audit(lines), "audit"))


@pytest.mark.parametrize("name", snippets(_AUDITS))
def test_an_audit_by_its_means_is_not_noted(name):
    """A spy may hold the machine, and the benchmark may be handed it."""
    assert _sentences(_audit(snippets(_AUDITS)[name][0]), "audit") == []


def test_other_exercises_may_look_at_themselves():
    """An exercise that hands over no function allows inspection."""
    source = "def vector_add(x, y, out):\n    return getattr(x, 'shape'), vars(x), type(x).__name__, x._base\n"
    assert not any("takes apart" in sentence for sentence in _sentences(source, "vector_add"))

"""Sources by what is noted of them, or that nothing is: `snippets` reads the tables.

A snippet begins with `## name -> text of the note`. With `##+` it is put into the honest sum: lines with four blanks
before it launches, the others on top.
"""

from __future__ import annotations

from tests.judge.submissions import VECTOR_ADD, changed

__all__ = ["BY_THE_LIBRARY", "FINE", "REACHING", "honest", "snippets"]


def honest(lines: str) -> str:
    """The honest sum with lines added."""
    body = "".join(line for line in lines.splitlines(keepends=True) if line.startswith("    "))
    top = "".join(line for line in lines.splitlines(keepends=True) if not line.startswith("    "))
    return top + changed(VECTOR_ADD, "    n = out", f"{body}    n = out")


def snippets(table: str) -> dict[str, tuple[str, str]]:
    """By name: the source, and the text of the note."""
    found = {}
    for part in ("\n" + table).split("\n## ")[1:]:
        head, _, lines = part.partition("\n")
        name, _, wanted = head.partition(" -> ")
        assert name not in found, name
        whole = lines.rstrip("\n") + "\n"
        found[name] = (honest(whole) if name.startswith("+ ") else whole, wanted)
    return found


BY_THE_LIBRARY = """
## its function -> Line 3 calls `torch.add`
import torch
def vector_add(x, y, out):
    torch.add(x, y, out=out)
## by an alias -> calls `torch.add`
from torch import add as plus
def vector_add(x, y, out): plus(x, y, out=out)
## by another name -> calls `torch.add`
import torch as t
f = t.add
def vector_add(x, y, out): f(x, y, out=out)
## by getattr -> calls `torch.add`
import torch
def vector_add(x, y, out): getattr(torch, 'a' + 'dd')(x, y, out=out)
## by its overload -> calls `torch.ops.aten.add.out`
import torch
def vector_add(x, y, out): torch.ops.aten.add.out(x, y, out=out)
## by sys.modules -> calls `torch.add`
import sys
def vector_add(x, y, out): sys.modules['torch'].add(x, y, out=out)
## by import_module -> calls `torch.add`
import importlib
lib = importlib.import_module('torch')
def vector_add(x, y, out): lib.add(x, y, out=out)
## by __dict__ -> calls `torch.add`
import torch
def vector_add(x, y, out): torch.__dict__['add'](x, y, out=out)
## handed on -> Line 3 calls `torch.add`
import torch
from functools import partial
work = partial(torch.add)
def vector_add(x, y, out): work(x, y, out=out)
## of the class -> calls `torch.Tensor.add`
import torch
def vector_add(x, y, out): out.copy_(torch.Tensor.add(x, y))
## a method -> calls `x.add`
def vector_add(x, y, out): out.copy_(x.add(y))
## a method in place -> calls `out.copy_(x).add_`
def vector_add(x, y, out): out.copy_(x).add_(y)
## a method of a copy -> calls `z.add_`
def vector_add(x, y, out):
    z = x.clone()
    z.add_(y)
    out.copy_(z)
## a method of memory of its own -> calls `z.add_`
import torch
def vector_add(x, y, out):
    z = torch.empty_like(x)
    z.copy_(x)
    z.add_(1)
    out.copy_(z)
## an operator -> goes into the output, `out.copy_(x + y)`
def vector_add(x, y, out): out.copy_(x + y)
## an operator and a slice -> goes into the output, `x + y`
def vector_add(x, y, out): out[...] = x + y
## an operator, later -> Line 3 lets the library compute what goes into the output, `z.view(-1)`
def vector_add(x, y, out):
    z = x + y
    out[:] = z.view(-1)
## in place -> goes into the output, `out += y`
def vector_add(x, y, out):
    out.copy_(x)
    out += y
## in a part, in place -> goes into the output, `out[1:] += y[1:]`
def vector_add(x, y, out):
    out.copy_(x)
    out[1:] += y[1:]
## on a view -> goes into the output, `x - -y`
def vector_add(x, y, out):
    o = out.view(-1)
    o[:] = x - (-y)
## by another function -> goes into the output, `torch.sum(torch.stack((x, y)), 0, out=out)`
import torch
def vector_add(x, y, out): torch.sum(torch.stack((x, y)), 0, out=out)
## by another method -> goes into the output, `out.sub_(-y)`
def vector_add(x, y, out):
    out.copy_(x)
    out.sub_(-y)
## by copy_ of the class -> goes into the output, `torch.Tensor.copy_(out, x + y)`
import torch
def vector_add(x, y, out): torch.Tensor.copy_(out, x + y)
## in a helper -> Line 3 lets the library compute what goes into the output, `a.copy_(b + c)`
def vector_add(x, y, out): helper(out, y, x)
def helper(a, b, c):
    a.copy_(b + c)
## by keywords -> goes into the output, `to.copy_(b + c)`
def vector_add(x, y, out): helper(to=out, b=y, c=x)
def helper(b, c, to): to.copy_(b + c)
## what a helper returns -> goes into the output, `out.copy_(plus(x, y))`
def plus(a, b): return a + b
def vector_add(x, y, out): out.copy_(plus(x, y))
## in a lambda -> goes into the output, `out.copy_(x + y)`
vector_add = lambda x, y, out: out.copy_(x + y)
## under another name -> goes into the output, `c.copy_(a + b)`
def work(a, b, c): c.copy_(a + b)
vector_add = work
## in an object -> Line 4 calls `torch.add`
import torch
class Add:
    def __call__(self, x, y, out):
        torch.add(x, y, out=out)
vector_add = Add()
## in a nested function -> Line 4 calls `torch.add`
import torch
def vector_add(x, y, out):
    def work():
        torch.add(x, y, out=out)
    work()
## in a nested function that is handed on -> Line 4 calls `torch.add`
import torch
def vector_add(x, y, out):
    def work():
        torch.add(x, y, out=out)
    run(work)
def run(work): work()
## a sign -> goes into the output, `-x`
def vector_add(x, y, out): out[:] = -x
## by the module operator -> goes into the output, `out.copy_(operator.add(x, y))`
import operator
def vector_add(x, y, out): out.copy_(operator.add(x, y))
## CuPy -> calls `cupy.add`
import cupy
def vector_add(x, y, out): cupy.add(cupy.asarray(x), cupy.asarray(y))
## CuPy's arrays -> goes into the output, `a + b`
import cupy
def vector_add(x, y, out):
    a, b, c = cupy.asarray(x), cupy.from_dlpack(y), cupy.asarray(out)
    c[...] = a + b
## torch.compile -> Line 2 uses `torch.compile`, which writes kernels for you
import torch
@torch.compile
def vector_add(x, y, out): out.copy_(x + y)
## + torch.compile beside a kernel -> uses `torch.compile`
import torch
fast = torch.compile(lambda x, y, out: out.copy_(x + y), dynamic=False)
    if x.numel(): return fast(x, y, out)
## + where the kernel fails -> falls back on `torch.add` when the kernel fails
import torch
    try:
        kernel[(1,)](x, y, out, 0, BLOCK=7)
    except Exception:
        torch.add(x, y, out=out)
## + where the kernel fails, by a method -> falls back on `x.add` when the kernel fails
    try:
        kernel[(1,)](x, y, out, 0, BLOCK=7)
    except Exception:
        out.copy_(x.add(y))
## a kernel that nothing launches -> Line 3 defines the kernel `add`, and nothing in `vector_add` launches it
import triton
@triton.jit
def add(x_ptr): pass
def vector_add(x, y, out): out.copy_(x)
def show(x): add[(1,)](x)
"""

REACHING = """
## + objects -> uses `gc.get_objects`
    import gc; gc.get_objects()
## + objects, by an alias -> uses `gc.get_objects`
from gc import get_objects as g
    g()
## + frames -> uses `sys._getframe`
import sys
    sys._getframe(1).f_locals
## + frames by getattr -> uses `sys._getframe`
import sys
    getattr(sys, '_getframe')(1)
## + frames by inspect -> uses `inspect.currentframe`
import inspect
    inspect.currentframe()
## + modules -> uses `sys.modules`
import sys
    sys.modules['secret']
## + a process -> uses `os.fork`
import os
    if os.fork() == 0: pass
## + an end -> uses `os._exit`
import os
    os._exit(0)
## + a shell -> uses `subprocess.run`
import subprocess
    subprocess.run('nvidia-smi -r', shell=True)
## + a socket -> uses `socket`
import socket
    socket.create_connection(('127.0.0.1', 1))
## + a signal -> uses `signal`
import signal
    signal.setitimer(signal.ITIMER_REAL, 1)
## + mapped memory -> uses `mmap`
import mmap
    mmap.mmap(3, 4096)
## + multiprocessing -> uses `multiprocessing`
import multiprocessing as m
    m.Process(target=print).start()
## + files of processes -> uses `/proc`
    open('/proc/self/maps').read()
## + the C library -> uses `ctypes.CDLL(None)`
import ctypes
    ctypes.CDLL(None).getpid()
## + the C library by its name -> uses `ctypes.CDLL('libc.so.6')`
import ctypes
    ctypes.CDLL('libc.so.6')
## + memory by address -> uses `from_address`
import ctypes
    ctypes.c_long.from_address(7)
## + objects by address -> uses `ctypes.string_at(id(x), 64)`
import ctypes
    ctypes.string_at(id(x), 64)
## + a thread -> starts a thread with `threading.Thread`, and nothing waits for it
import threading
    threading.Thread(target=print).start()
## + the judge -> Line 1 uses `grader.judge`, a part of the grader
from grader.judge import compare
## + the worker -> uses `grader.worker`, a part of the grader
import grader.worker.main as m
    m.Worker
## + the power of the GPU -> uses `pynvml.nvmlDeviceSetPowerManagementLimit`
import pynvml
    pynvml.nvmlDeviceSetPowerManagementLimit(0, 0)
## + exec -> uses `exec`: code that is created at run time
    exec('pass')
## + eval -> uses `eval`
    eval('1')
## + __import__ -> uses `__import__`
    __import__('time')
## + a name made up -> Line 2 uses `importlib.import_module(codecs.decode('gbepu', 'rot13'))`
import codecs, importlib
m = importlib.import_module(codecs.decode('gbepu', 'rot13'))
## + a patch -> Line 2 replaces `torch.cuda.synchronize`
import torch
torch.cuda.synchronize = print
## + a patched clock -> replaces `time.perf_counter`
import time
    time.perf_counter = lambda: 0
## + a patch by setattr -> Line 2 replaces `torch.Tensor.add`
import torch
setattr(torch.Tensor, 'add', 1)
## + a patch in __dict__ -> replaces `time.time`
import time
    time.__dict__['time'] = print
## + a patched builtin -> replaces `builtins.print`
import builtins
builtins.print = len
## + a module replaced -> replaces `time`
import sys
    sys.modules['time'] = None
## + a patch by mock -> replaces `unittest.mock.patch`
from unittest.mock import patch
patch('torch.compile', print).start()
## + a patch of an object by mock -> replaces `unittest.mock.patch.object`
from unittest import mock
mock.patch.object(print, 'x').start()
## + a patch of any module -> replaces `json.loads`
import json
json.loads = print
## + a patch of a module by a name that nobody knows -> replaces `torch.…`
import torch
    setattr(torch, x.name, print)
## + a patch of what nobody knows -> replaces `setattr(each, 'compile', print)`
    for each in x: setattr(each, 'compile', print)
## + a patch through the names of a module -> replaces `torch.…`
import torch
    vars(torch).update(compile=print)
## + a patch through the names of a module, one by one -> replaces `torch.…`
import torch
    torch.__dict__[x.name] = print
## + a patch by a method of object -> replaces `torch.compile`
import torch
    object.__setattr__(torch, 'compile', print)
## + compiling switched off -> replaces `torch._dynamo.config.disable`
import torch
torch._dynamo.config.disable = True
## + another stance -> uses `torch.compiler.set_stance`
import torch
torch.compiler.set_stance('force_eager')
## + an operation of torch -> replaces `torch.library.Library('aten', 'IMPL')`
import torch
library = torch.library.Library('aten', 'IMPL')
## + an operation of torch, by its name -> replaces `torch.library.impl('aten::add.out', 'CUDA')`
import torch
torch.library.impl('aten::add.out', 'CUDA')
## + a frame of a generator -> uses `gi_frame`
    (n for n in x).gi_frame
## + a module that is made of a file -> uses `importlib.util.spec_from_file_location`
import importlib.util
    importlib.util.spec_from_file_location('x', 'y')
## + a module by a name that nobody knows -> uses `importlib.import_module(name)`
import importlib
    for name in x: importlib.import_module(name)
## + the grader, by its name -> uses `grader.worker`, a part of the grader
import importlib
    importlib.import_module('grader.' + 'worker.main')
## + an address as a key -> `x.data_ptr() in kept`
kept = {}
    if x.data_ptr() in kept: return
## + an identity as a key -> `kept[id(x)]`
kept = {}
    kept[id(x)] = out
## + a key of several -> `kept.get(key)`
kept = {}
    key = x.shape, id(x)
    kept.get(key)
## + an address in a dictionary -> `{x.data_ptr(): 1}`
    kept = {x.data_ptr(): 1}
## + an address compared -> `x.data_ptr() == last`
last = 0
    if x.data_ptr() == last: return
## + a version -> `last.setdefault(x._version, 1)`
last = {}
    last.setdefault(x._version, 1)
## a cache of tensors -> Line 4 tells tensors apart by their address or identity, `cache`
import triton
from functools import cache
kernel = triton.jit(lambda x: x)
@cache
def vector_add(x, y, out): kernel[(1,)](x)
## + an answer -> keeps a copy of an output, `out.clone()`
kept = {}
    kept[x.shape] = out.clone()
## + a CUDA graph -> uses `torch.cuda.CUDAGraph`
import torch
    torch.cuda.CUDAGraph()
## + a graphed call -> uses `torch.cuda.make_graphed_callables`
import torch
    torch.cuda.make_graphed_callables(print, ())
## + a stream -> makes a CUDA stream, and nothing waits for it
import torch
    torch.cuda.Stream()
## + a stream that waits, and nobody for it -> makes a CUDA stream, and nothing waits for it
import torch
s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
## + an odd size -> `x.shape[0] == 98432`
    if x.shape[0] == 98_432:
        return out.copy_(y)
## + a huge size -> `x.numel() == 1 << 25`
    if x.numel() == 1 << 25: return print()
## + a size by its name -> `m in (7, 1000003)`
    m = x.numel()
    if m in (7, 1000003): print()
## + a whole shape -> `x.shape == (4096, 4096)`
    if x.shape == (4096, 4096): print()
## + a size in a helper -> `n == 781`
    helper(x.numel())
def helper(n): return print() if n == 781 else None
## a stub's words beside a trick -> uses `gc.get_objects`
import gc
def vector_add(x, y, out):
    gc.get_objects()
    raise NotImplementedError('not written yet')
"""

FINE = r"""
## + prints and warnings
import sys, warnings
    print(x.sum(), file=sys.stderr)
    warnings.warn('slow')
## + the environment
import os
os.environ['TORCH_CUDA_ARCH_LIST'] = '9.0'
os.makedirs('built', exist_ok=True)
## + flags of torch
import torch
torch.backends.cuda.matmul.allow_tf32 = True
torch._dynamo.config.verbose = True
torch.utils.cpp_extension.CUDA_HOME = '/usr/local/cuda'
## + attributes of one's own
class Kept: pass
kept = Kept()
    setattr(kept, 'last', 1)
    kept.more = 2
## + attributes of what a library gives
import ctypes
library = ctypes.CDLL('./own.so')
library.add.argtypes = [ctypes.c_void_p]
    library.add.restype = None
## + an operator of one's own beside torch's
import torch
library = torch.library.Library('mine', 'FRAGMENT')
torch.library.register_fake('mine::add')
## + a comparison in the function
import torch
    assert torch.allclose(out, torch.add(x, y))
    print(torch.equal(out, x.add(y)))
## + a test beside it
import torch
def test(): assert torch.equal(out, torch.add(x, y))
## + what it is compared with
import torch
reference = torch.add
## + arithmetic of sizes
    m = x.numel() + y.shape[0] * 2
    m = -(-m // 1000)
    if x.numel() % 1000 == 781: print(m)
## + arithmetic of its own
import torch
    steps = torch.add(torch.arange(8), 1)
    steps = steps + 1
## + scratch
import torch
    scratch = torch.empty_like(out)
    out.copy_(scratch)
    out.zero_()
## + padding
import torch
    padded = torch.zeros(2048)
    padded[: x.numel()] = x
    out.copy_(padded[:1])
## + views in place
    out.unsqueeze_(0).squeeze_()
    out.detach_().copy_(x.clone().fill_(1))
## + a contiguous copy
    x = x.contiguous()
    y = y.clone().view(-1)
## + alignment
    if x.data_ptr() % 16 == 0 and out.data_ptr() & 15 == 0: print(2)
## + overlap
    assert x.data_ptr() != out.data_ptr() and x.data_ptr() != 0 and x is not out
## + a choice by size
    warps = 8 if x.numel() == 98432 else 4
    if x.numel() == 1000003:
        warps = 16
    elif x.numel() == 781:
        warps, block = 2, 512
## + a limit
    assert x.numel() <= 1 << 30
    if x.numel() > 1000000: print(x.numel() == 1024)
## + a table of sizes
TABLE = {781: 4, 1 << 25: 8}
    TABLE.get(x.numel(), 4)
## + a cache of numbers
from functools import cache
@cache
def blocks(n): return -(-n // 1024)
    blocks(x.numel())
## + a cache by size
kept = {}
    kept.setdefault((x.shape, x.dtype, x.device), 1)
## + a copy at hand
    before = out.clone()
    pair = {'out': out}
    pair['x'], pair['y'] = x.clone(), out
    pair['y'] = out
## + a joined stream
import torch
s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    torch.cuda.current_stream().wait_stream(s)
## + a joined thread
import threading
    t = threading.Thread(target=print)
    t.start()
    t.join()
## + a lock
import threading
lock = threading.Lock()
    with lock: pass
## + collecting rubbish
import gc
    gc.collect()
## + looking at oneself
import inspect, sys
    inspect.signature(print), sys.version, 'cupy' in sys.modules, sys.modules[__name__]
## + the notebook's imports
from grader import benchmark, check, device
from grader.explore import compare
    compare(1, 2)
## nvcc by hand
import pathlib, subprocess
source = "__global__ void f() {}"
pathlib.Path('f.cu').write_text(source)
def build(): subprocess.run(['/usr/local/cuda/bin/nvcc', '-shared', 'f.cu'], check=True)
def vector_add(x, y, out): build()
## nvcc by a command that has a name, as a text that is split
import subprocess
with open('f.cu', 'w') as file: file.write("__global__ void f() {}")
command = f"nvcc --fatbin -arch=sm_{90} -o f.fatbin f.cu"
subprocess.run(command.split(), check=True)
words = ["nvcc", "--fatbin", "f.cu"]
subprocess.run(words, check=True)
def vector_add(x, y, out): pass
## + compile
import re
pattern = re.compile('x')
def compile(x): return x
    compile(pattern)
## + eval of a model
    x.layer.eval()
## an operator of its own
import torch
from torch.utils.cpp_extension import load_inline
load_inline('a', '', '__global__ void f() {}')
vector_add = torch.ops.mine.add
## an extension of its own
from torch.utils.cpp_extension import load_inline
module = load_inline('a', '', '__global__ void f() {}')
def vector_add(x, y, out): module.add(x, y, out)
## a kernel of Gluon
from triton.experimental import gluon
@gluon.jit
def kernel(x): pass
def vector_add(x, y, out): kernel[(1,)](x)
## jit by its name
from triton import jit
@jit
def kernel(x): pass
def vector_add(x, y, out): kernel[(1,)](x)
## jit as a function
import triton
def kernel(x): pass
fast = triton.jit(kernel)
def vector_add(x, y, out): fast[(1,)](x)
## everything of triton
from triton import *
@jit
def kernel(x): pass
def vector_add(x, y, out): kernel[(1,)](x)
## a kernel chosen
import triton
@triton.jit
def kernel(x): pass
table = {'a': kernel}
def pick(): return table['a']
def vector_add(x, y, out): pick()[(1,)](x)
## a kernel registered
import triton
table = []
def register(f):
    table.append(f)
    return f
@register
@triton.jit
def kernel(x): pass
def vector_add(x, y, out):
    for k in table: k[(1,)](x)
## a kernel by its name
import triton
@triton.jit
def kernel(x): pass
def vector_add(x, y, out): globals()['kernel'][(1,)](x)
## methods of blocks
import triton
@triton.jit
def kernel(x): x.add(x.exp()).sum()
def vector_add(x, y, out): kernel[(1,)](x)
## + torch in a text
    '''torch.add(x, y, out=out), /proc, exec'''
## + imports that may be missing
try: import cupy
except ImportError: cupy = None
## + an error told
    try:
        pass
    except RuntimeError as error:
        raise ValueError('no') from error
## + an escape
pattern = '\d'
"""

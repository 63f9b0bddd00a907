"""Tell a pretend GPU's tensors from those of the CPU, where all memory is the CPU's.

While a submission runs, a mode of torch marks each tensor that it makes. As on a GPU, `x.device` is `cuda:0` for it, an
operation on tensors of two devices fails, and NumPy cannot read a GPU's tensor. Tensors that others make have no mark,
and are never the reason for a failure.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from grader.worker.simulator import scratch, tally
from grader.worker.simulator.lacks import NotSimulated

GPU, CPU = "cuda", "cpu"
UNWRITTEN = {2: 0x7FDC, 4: 0x7FC0_5CA7, 8: 0x7FF8_0000_0000_5CA7}  # a NaN, by size in bytes: what `torch.empty` holds
_MARK, _PINNED = "_grader_device", "_grader_pinned"
_SUBMISSION = "submission.py"
_TENSOR: Any = torch.Tensor  # to a type checker its properties are values
_DEVICE, _IS_CPU = _TENSOR.device.__get__, _TENSOR.is_cpu.__get__
_CUDA_ARRAY = _TENSOR.__cuda_array_interface__.__get__
_HOST_READS: set[Any] = {torch.Tensor.numpy, torch.Tensor.__array__}
_MOVES = {torch.Tensor.to, torch.Tensor.cpu, torch.Tensor.cuda}
_PINS = {torch.Tensor.pin_memory, torch.Tensor.is_pinned}
_ACROSS = frozenset(  # operations on tensors of two devices that a GPU takes
    {"copy_", "to", "type_as", "__setitem__", "set_", "index", "__getitem__", "is_set_to"}
    | {"expand_as", "view_as", "reshape_as", "is_same_size", "tensor_split"}  # they need a shape, or splits on the CPU
)
_EMPTY = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})
_MAKES = _EMPTY | scratch.FACTORIES | {
    "tensor", "arange", "linspace", "logspace", "eye", "rand", "randn", "randint", "randperm", "as_tensor",
}  # fmt: skip
_TWO = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
_TO_NUMPY = (
    "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
)
_FROM_HOST = "`ctypes.{}` runs on the CPU and gets an address of a GPU's memory"

_asks = [False]  # whether the submission asked if there is a GPU: here there is none
_default = [""]  # the device that `torch.set_default_device` has set
_spans: list[tuple[int, int]] = []  # the addresses of the current call's tensors


class SegmentationFault(RuntimeError):
    """The CPU was given the address of a GPU's memory. Only a GPU has another one."""


def install() -> None:
    """Watch what has no mode of torch. A second call does nothing."""
    if hasattr(ctypes.memmove, "__wrapped__"):
        return
    for name in ("memmove", "memset", "string_at"):
        setattr(ctypes, name, _of_the_host(name, getattr(ctypes, name)))
    cuda: Any = torch.cuda
    accelerator: Any = torch.accelerator
    cuda.is_available, cuda.device_count = _asking(cuda.is_available), _asking(cuda.device_count)
    accelerator.is_available = _asking(accelerator.is_available)
    cuda.set_device = lambda device: None
    from_numpy = torch.from_numpy

    @functools.wraps(from_numpy)
    def marked(array: Any) -> Any:
        return _mark(from_numpy(array), CPU)

    torch.from_numpy = marked  # type: ignore[assignment]
    _register_for_a_gpu(torch.library.Library)


@contextlib.contextmanager
def watching(*tensors: Any) -> Iterator[None]:
    """Within it, a submission runs; `tensors` are those of the GPU that it gets.

    It does nothing if they are on a GPU, or have no data because the submission is only compiled.
    """
    if any(_DEVICE(each).type != CPU for each in tensors):
        yield
        return
    for each in tensors:
        _mark(each, GPU)
    _spans[:] = [(each.data_ptr(), each.data_ptr() + each.untyped_storage().nbytes()) for each in tensors]
    with _Devices():
        yield


def device_of(tensor: Any) -> str:
    """Return "cuda", "cpu", or "" for a tensor without a mark."""
    return str(getattr(tensor, _MARK, ""))


def use_default(device: Any) -> None:
    """`torch.set_default_device` of a submission."""
    _default[0] = "" if device is None else _wanted(device)[0]


def _asking(function: Callable[[], Any]) -> Callable[[], Any]:
    """Remember that a submission asked this function if there is a GPU."""

    @functools.wraps(function)
    def ask() -> Any:
        _asks[0] |= sys._getframe(1).f_code.co_filename.rpartition("/")[2] == _SUBMISSION  # not torch on its behalf
        return function()

    return ask


def _register_for_a_gpu(library: Any) -> None:
    """Let an operator's kernel for CUDA run here, and not the one that a submission registers for the CPU as well."""
    impl = library.impl
    of_gpu: set[str] = set()

    @functools.wraps(impl)
    def register(self: Any, op_name: Any, fn: Any, dispatch_key: str = "", **how: Any) -> None:
        key = dispatch_key or self.dispatch_key
        if is_submission(sys._getframe(1)):
            operator = str(op_name).rpartition("::")[2]
            if key == "CPU" and operator in of_gpu and not _asks[0]:
                return
            if key in ("CUDA", "CompositeExplicitAutograd"):
                of_gpu.add(operator)
            key = {"CUDA": "CPU", "AutogradCUDA": "AutogradCPU"}.get(key, key)
        impl(self, op_name, fn, key, **how)

    library.impl = register


def _mark(tensor: Any, device: str) -> Any:
    if isinstance(tensor, torch.Tensor) and device:
        setattr(tensor, _MARK, device)
    return tensor


def is_submission(frame: Any) -> bool:
    """Whether a submission's code runs in the frame, or calls it by functions of torch that are written in Python."""
    while frame is not None and "/torch/" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.rpartition("/")[2] == _SUBMISSION


class _Devices(TorchFunctionMode):
    def __torch_function__(
        self, function: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = dict(kwargs or {})
        if not is_submission(sys._getframe(1)):
            return function(*args, **named)
        if function == _DEVICE:  # a new object for each access
            return _DEVICE(args[0]) if device_of(args[0]) == CPU else torch.device(GPU, 0)
        if function == _IS_CPU:
            return device_of(args[0]) == CPU
        if function is torch.Tensor.get_device:
            return -1 if device_of(args[0]) == CPU else 0
        name = getattr(function, "__name__", "")
        if device_of(args[0] if args else None) == GPU:
            if function in _HOST_READS:
                raise TypeError(_TO_NUMPY)
            if name == "__dlpack__" and not _calls(sys._getframe(1), "dlpack.py"):
                raise BufferError("Unsupported device in DLTensor.")  # NumPy's words
            if function == _CUDA_ARRAY:
                raise NotSimulated("`__cuda_array_interface__`")
        if function in _PINS:
            return _pinned(function, args[0])
        if function in _MOVES:
            return _moved(function, args, named)
        wanted = None
        if named.get("device") is not None:
            wanted, named["device"] = _wanted(named["device"])
        elif _default[0] and named.get("generator") is None and name in _MAKES:
            wanted = _default[0]
        pinned = named.pop("pin_memory", False)
        operands = list(_tensors([*args, *named.values()]))
        devices = {device_of(each) for each in operands}
        if name not in _ACROSS and GPU in devices and any(device_of(each) == CPU and each.dim() for each in operands):
            raise RuntimeError(_TWO)
        result = function(*args, **named)
        if wanted is None:
            wanted = GPU if GPU in devices else CPU if devices <= {CPU} else ""
        new = [each for each in _tensors([result]) if not any(each is operand for operand in operands)]
        for each in new:
            _mark(each, wanted)
            if pinned:
                setattr(each, _PINNED, True)
        if not new:  # with `out=`, for example
            return result
        with tally.own_work():
            if wanted == GPU and name in scratch.FACTORIES:
                scratch.guard(result, sys._getframe(1))
            return _filled(result) if name in _EMPTY else result


def _wanted(device: Any) -> tuple[str, Any]:
    """Return the mark for a device that the submission names, and the device on which its memory is here."""
    kind = GPU if isinstance(device, int) else torch.device(device).type
    if kind == GPU:
        return GPU, torch.device(CPU)
    return (CPU if kind == CPU and not _asks[0] else ""), device


def _moved(function: Any, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """Carry out `to`, `cpu` or `cuda`. Between devices they copy."""
    tensor, *rest = args
    at = device_of(tensor)
    if function is torch.Tensor.to:
        wanted = at
        if named.get("device") is not None:
            wanted, named["device"] = _wanted(named["device"])
        elif rest and isinstance(rest[0], torch.Tensor):
            wanted = device_of(rest[0])
        elif rest and isinstance(rest[0], (str, int, torch.device)):
            wanted, rest[0] = _wanted(rest[0])
        result = function(tensor, *rest, **named)
    elif function is torch.Tensor.cuda:
        wanted, result = GPU, tensor
    else:
        wanted, result = CPU, function(tensor, **named)
    if wanted == at:
        return result if result is tensor else _mark(result, at)
    return _mark(result.clone() if result is tensor else result, wanted)


def _pinned(function: Any, tensor: Any) -> Any:
    """Carry out `pin_memory`, which copies to the CPU's memory that stays in place, or `is_pinned`."""
    if function is torch.Tensor.is_pinned:
        return getattr(tensor, _PINNED, False)
    if device_of(tensor) == GPU:
        raise RuntimeError(
            f"cannot pin '{tensor.type().replace('torch.', 'torch.cuda.')}' only dense CPU tensors can be pinned"
        )
    found = _mark(tensor.clone(), device_of(tensor))
    setattr(found, _PINNED, True)
    return found


def _calls(frame: Any, file: str) -> bool:
    """Whether a function of this file of torch's runs in the frame, or has called it."""
    while frame is not None and "/torch/" in frame.f_code.co_filename:
        if frame.f_code.co_filename.endswith(f"/{file}"):
            return True
        frame = frame.f_back
    return False


def _tensors(values: Any) -> Iterator[Any]:
    """Yield the tensors among the values, and in lists and tuples of them."""
    for each in values:
        if isinstance(each, torch.Tensor):
            yield each
        elif isinstance(each, (list, tuple)):
            yield from (inner for inner in each if isinstance(inner, torch.Tensor))


def _filled(tensor: Any) -> Any:
    """Fill a new tensor of floating-point numbers with a NaN that no computation gives."""
    bits = UNWRITTEN.get(tensor.element_size()) if type(tensor) is torch.Tensor else None
    if bits is None or tensor.device.type != CPU or not tensor.is_floating_point():
        return tensor
    integer = getattr(torch, f"int{8 * tensor.element_size()}")
    with torch.no_grad():
        tensor.view(integer).fill_(struct.unpack("q", struct.pack("Q", bits))[0])
    return tensor


def _of_the_host(name: str, function: Any) -> Any:
    """Refuse an address of a GPU's memory, for a function of `ctypes` that a submission calls."""

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        numbers = [getattr(each, "value", each) for each in args[:2]]
        given = [each for each in numbers if isinstance(each, int)]
        if is_submission(sys._getframe(1)) and any(low <= each < high for each in given for low, high in _spans):
            raise SegmentationFault(_FROM_HOST.format(name))
        return function(*args, **named)

    return call

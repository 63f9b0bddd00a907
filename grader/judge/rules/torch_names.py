"""What names of torch (and CuPy) mean for the reading of a source: which make tensors, move them, or compute."""

from __future__ import annotations

import ast

from grader.judge.rules.names import Names, words

__all__ = [
    "CACHES",
    "CHECKS",
    "COMPILERS",
    "CONTAINERS",
    "CREATES",
    "FACTS",
    "FILLS",
    "LOOKUPS",
    "OF_SIZES",
    "SIZES",
    "VIEWS",
    "canonical",
    "is_jit",
    "is_kernel",
    "operation",
]

COMPILERS = {"torch.compile", "torch.jit.script", "torch.jit.trace", "torch._dynamo.optimize"}
CACHES = {"functools.cache", "functools.lru_cache"}
CHECKS = {"allclose", "assert_close", "isclose", "equal", "assert_allclose", "array_equal", "array_equiv"}
CONTAINERS = {"builtins.tuple", "builtins.list", "builtins.frozenset", "builtins.str", "builtins.int"}
OF_SIZES = {"builtins.len", "builtins.int", "math.prod", "torch.Size"}
LOOKUPS = {"get", "setdefault", "pop", "add", "__getitem__", "__setitem__", "__contains__"}

SIZES = {"shape", "size", "numel", "nelement", "__len__"}
FACTS = words(
    """stride item tolist dim ndimension is_contiguous element_size get_device type storage_offset untyped_storage
    storage is_floating_point is_complex is_pinned record_stream requires_grad_ register_hook backward"""
)
FILLS = {"zero_", "fill_", "record_stream", "requires_grad_", "uniform_", "normal_", "random_", "detach_", "resize_"}
CREATES = words(
    """empty empty_like empty_strided zeros zeros_like ones ones_like full full_like tensor arange linspace eye rand
    randn randint rand_like randn_like new_empty new_zeros new_ones new_full new_tensor new_empty_strided"""
)
VIEWS = words(
    """T mT H mH data real grad contiguous view view_as reshape reshape_as flatten ravel unflatten squeeze unsqueeze
    transpose t permute movedim swapaxes expand expand_as broadcast_to narrow select chunk split tensor_split unbind
    unfold as_strided diagonal detach clone to cpu cuda float double half bfloat16 type_as pin_memory alias
    as_tensor asarray from_dlpack to_dlpack from_numpy numpy as_cuda_array stack cat concat concatenate hstack vstack
    pad constant_pad_nd flip roll repeat tile index_select gather take __getitem__"""
)

_OF_KERNELS = {"triton", "numba", "cupyx"}


def canonical(dotted: str) -> str:
    """The name if it is one of torch's or CuPy's; "" for others, among them operators that somebody registered."""
    parts = dotted.split(".")
    if parts[0] not in ("torch", "cupy"):
        return ""
    if parts[:2] == ["torch", "ops"] and parts[2:3] not in (["aten"], ["prims"]):
        return ""
    return dotted


def operation(name: str) -> str:
    """What a function does: "softmax" for `nn.functional.softmax` and `aten.softmax.int_out`, "exp" for `exp_`."""
    parts = name.split(".")
    last = parts[3] if parts[:2] == ["torch", "ops"] and len(parts) > 3 else parts[-1]
    if last.startswith("__"):
        return last
    return last.removesuffix("_out").rstrip("_")


def is_kernel(names: Names, function: ast.AST) -> bool:
    """Whether a compiler for the GPU takes the function: what it says are not calls of torch."""
    decorators = getattr(function, "decorator_list", ())
    return any(is_jit(names, each.func if isinstance(each, ast.Call) else each) for each in decorators)


def is_jit(names: Names, node: ast.expr) -> bool:
    """Whether this is what makes a kernel of a function: `triton.jit`, `cuda.jit`, `jit.rawkernel`, `gluon.jit`."""
    dotted = names.dotted(node)
    if dotted.split(".")[0] in _OF_KERNELS:
        return dotted.endswith((".jit", ".rawkernel", ".JITFunction"))
    return dotted == "builtins.jit" and any(star.split(".")[0] in _OF_KERNELS for star in names.stars)

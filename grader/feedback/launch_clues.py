"""Bugs of a launch and of what comes before it in Python: sums without a start, exchanged arguments, cut addresses."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence

from grader.feedback import cuda_clues

_EMPTY = ("empty", "empty_like", "new_empty")
_FILLS = ("zero_", "fill_", "copy_")
_KEPT = ("reset_to_zero", "restore_value", "pre_hook")
_SHORT = {"c_int", "c_uint", "c_float", "c_double", "c_bool", "c_char_p"}  # sizes, flags and a function's result
_NARROW = {"int8": "127", "uint8": "255", "int16": "32,767", "uint16": "65,535"}


def wrong_result(tree: ast.Module, strings: Sequence[str] = ()) -> str:
    """A sentence about a bug of a launch that makes a result wrong, or "". `strings` are the cell's."""
    found = (_tuned_sums(tree), _scratch(tree), _unpacked(tree), _passed_in_another_order(tree, strings))
    return next(itertools.chain(*found), "")


def stray_access(tree: ast.Module) -> tuple[str, str] | None:
    """Why a kernel uses memory that is not its own, or writes to an input, and what to do about it."""
    return next(_exchanged(tree), None) or next(_narrow_index(tree), None)


def cut_addresses(tree: ast.Module, strings: Sequence[str]) -> tuple[str, str] | None:
    """Why a C function gets wrong addresses, and what to do about it, if the cell does not declare their type."""
    names = {getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(tree)}
    if not any('extern "C"' in each for each in strings) or "CDLL" not in names or "data_ptr" not in names:
        return None
    if {"argtypes", "POINTER"} & names or any(name.startswith("c_") for name in names - _SHORT):
        return None
    return (
        "`argtypes` is not set, so `ctypes` passes an address as an `int` of 32 bits and cuts it off.",
        "Set it before the call: `function.argtypes = [ctypes.c_void_p, …]`, with a type for each argument.",
    )


_ACROSS, _DOWN = ("columns", "cols", "n_cols", "ncols", "width"), ("rows", "n_rows", "nrows", "height")


def _unpacked(tree: ast.Module) -> Iterator[str]:
    """The shape of an input is unpacked with its names exchanged."""
    for function in _functions(tree):
        inputs = [each.arg for each in function.args.args if each.arg != "out"]
        for node in ast.walk(function):
            if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)):
                continue
            names = [_last(each) for each in node.targets[0].elts]
            of, _, attribute = ast.unparse(node.value).partition(".")
            across, down = ([name.lower() in words for name in names[:2]] for words in (_ACROSS, _DOWN))
            if attribute == "shape" and of in inputs and across[:1] == [True] and down[1:] == [True]:
                yield (
                    f"Line {node.lineno} unpacks `{of}.shape` as `{', '.join(names)}`, but the number of rows comes "
                    "first."
                )


def _passed_in_another_order(tree: ast.Module, strings: Sequence[str]) -> Iterator[str]:
    """A C function or a kernel gets variables that have the names of its parameters, in another order."""
    of_c: dict[str, list[str]] = {}
    for each in strings:
        if "__global__" in each:
            of_c |= cuda_clues.parameters(each)
            yield from cuda_clues.launched_in_another_order(each)
    kernels = triton_kernels(tree)
    calls: dict[tuple[str, str], list[list[str]]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or any(isinstance(each, ast.Starred) for each in node.args):
            continue
        given = [ast.unparse(each).removesuffix(".data_ptr()") for each in node.args]
        if isinstance(node.func, ast.Attribute) and node.func.attr in of_c:
            calls.setdefault((node.func.attr, "call"), []).append(given)
        elif isinstance(node.func, ast.Subscript) and _last(node.func.value) in kernels:
            calls.setdefault((_last(node.func.value), "launch"), []).append(given)
    for (name, kind), every in calls.items():
        wanted = of_c[name] if kind == "call" else [each.arg.removesuffix("_ptr") for each in kernels[name].args.args]
        yield from cuda_clues.another_order(name, every, wanted[: max(map(len, every))], kind)


def _tuned_sums(tree: ast.Module) -> Iterator[str]:
    for kernel in triton_kernels(tree).values():
        tunes = [each for each in kernel.decorator_list if isinstance(each, ast.Call) and _name(each) == "autotune"]
        names = {word.arg for each in tunes for node in ast.walk(each) if isinstance(node, ast.Call)
                 for word in node.keywords}  # fmt: skip
        if tunes and not names.intersection(_KEPT) and _added_to(kernel):
            yield (
                f"`triton.autotune` runs `{kernel.name}` many times to time it, and each run adds to what the last one "
                f'left. Pass `reset_to_zero=["{next(iter(_added_to(kernel)))}"]` to `triton.autotune`.'
            )


def _scratch(tree: ast.Module) -> Iterator[str]:
    kernels = triton_kernels(tree)
    added = {name: _added_to(kernel) for name, kernel in kernels.items()}
    for function in _functions(tree):
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        filled = {_last(call.func.value) for call in calls
                  if isinstance(call.func, ast.Attribute) and call.func.attr in _FILLS}  # fmt: skip
        empty = {
            _last(target)
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _name(node.value) in _EMPTY
            for target in node.targets
        }
        for kernel, arguments in _launches(function, kernels):
            for parameter in added[kernel.name]:
                argument = arguments.get(parameter, "")
                if argument in empty - filled:
                    yield (
                        f"The kernel adds to `{argument}`, which comes from `torch.empty` and can hold any value. Make "
                        "it with `torch.zeros`, or set it to 0 before each launch."
                    )


def _exchanged(tree: ast.Module) -> Iterator[tuple[str, str]]:
    kernels = triton_kernels(tree)
    for function in _functions(tree):
        own = [each.arg for each in function.args.args]
        for kernel, arguments in _launches(function, kernels):
            names = {parameter: name for parameter in arguments for name in own if parameter in (name, f"{name}_ptr")}
            for parameter, name in names.items():
                other = arguments[parameter]
                if other != name and other in names.values() and arguments.get(_of(names, other)) == name:
                    yield (
                        f"The launch passes `{other}` as `{parameter}` and `{name}` as `{_of(names, other)}`: they are "
                        "exchanged, so the kernel writes to an input.",
                        f"Pass the arguments of `{kernel.name}` in the order of its parameters.",
                    )


def _of(names: dict[str, str], wanted: str) -> str:
    return next(parameter for parameter, name in names.items() if name == wanted)


def _narrow_index(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for kernel in triton_kernels(tree).values():
        for call in ast.walk(kernel):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "to"):
                continue
            of_programs = any(
                isinstance(each, ast.Call) and _name(each) == "program_id" for each in ast.walk(call.func)
            )
            for kind in (_last(each) for each in call.args):
                if of_programs and kind in _NARROW:
                    article = "an" if kind.startswith("int") else "a"
                    yield (
                        f"The number of a program becomes {article} `{kind}`, which ends at {_NARROW[kind]}. Larger "
                        "ones become negative or wrap around to 0.",
                        "Leave out the conversion, or convert to `tl.int64`.",
                    )


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def triton_kernels(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    found = {}
    for each in _functions(tree):
        words = " ".join(ast.unparse(decorator) for decorator in each.decorator_list)
        if "jit" in words and "cuda" not in words:  # not Numba's `cuda.jit`
            found[each.name] = each
    return found


def _launches(
    function: ast.FunctionDef, kernels: dict[str, ast.FunctionDef]
) -> Iterator[tuple[ast.FunctionDef, dict[str, str]]]:
    """The `kernels` that a function launches, each with the names that it passes, by parameter."""
    for node in ast.walk(function):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)):
            continue
        kernel = kernels.get(_last(node.func.value))
        if kernel is not None:
            given = dict(zip((each.arg for each in kernel.args.args), node.args, strict=False))
            given |= {word.arg: word.value for word in node.keywords if word.arg}
            yield kernel, {name: value.id for name, value in given.items() if isinstance(value, ast.Name)}


def _added_to(kernel: ast.FunctionDef) -> dict[str, None]:
    """The parameters to which a kernel adds with an atomic, in their order."""
    first = [call.args[0] for call in ast.walk(kernel) if isinstance(call, ast.Call) and _name(call) == "atomic_add"
             and call.args]  # fmt: skip
    used = {node.id for each in first for node in ast.walk(each) if isinstance(node, ast.Name)}
    return {each.arg: None for each in kernel.args.args if each.arg in used}


def _name(call: ast.Call) -> str:
    return _last(call.func)


def _last(node: ast.expr) -> str:
    """The name, without the modules before it."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""

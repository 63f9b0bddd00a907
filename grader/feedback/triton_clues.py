"""Bugs of Triton's launches that a cell's text shows, and that no GPU names.

The search begins only once the output is wrong or the launch has failed, so that right work is never suspected.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_EMPTY = ("empty", "empty_like", "new_empty")
_FILLS = ("zero_", "fill_", "copy_")
_KEPT = ("reset_to_zero", "restore_value", "pre_hook")
_NARROW = {"int8": "127", "uint8": "255", "int16": "32,767", "uint16": "65,535"}


def wrong_result(tree: ast.Module) -> str:
    """A sentence about a launch that makes a result wrong, or ""."""
    return next(_tuned_sums(tree), "") or next(_scratch(tree), "")


def stray_access(tree: ast.Module) -> tuple[str, str] | None:
    """Why a kernel uses memory that is not its own, or writes to an input, and what to do about it."""
    return next(_exchanged(tree), None) or next(_narrow_index(tree), None)


def _tuned_sums(tree: ast.Module) -> Iterator[str]:
    for kernel in _kernels(tree).values():
        tunes = [each for each in kernel.decorator_list if isinstance(each, ast.Call) and _name(each) == "autotune"]
        names = {word.arg for each in tunes for node in ast.walk(each) if isinstance(node, ast.Call)
                 for word in node.keywords}  # fmt: skip
        if tunes and not names.intersection(_KEPT) and _added_to(kernel):
            yield (
                f"`triton.autotune` runs `{kernel.name}` many times to time it, and each run adds to what the last one "
                f'left. Pass `reset_to_zero=["{next(iter(_added_to(kernel)))}"]` to `triton.autotune`.'
            )


def _scratch(tree: ast.Module) -> Iterator[str]:
    kernels = _kernels(tree)
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
    kernels = _kernels(tree)
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
    for kernel in _kernels(tree).values():
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
                        "ones become negative or start over at 0.",
                        "Leave out the conversion, or convert to `tl.int64`.",
                    )


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def _kernels(tree: ast.Module) -> dict[str, ast.FunctionDef]:
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

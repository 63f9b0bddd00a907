"""Facts about a wrong output and the submission's source, for the questions in `questions.py`.

The source is searched for bugs only once the output is wrong or the launch has failed, so that right work is never
suspected.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite

from grader.exercise import Case, Exercise
from grader.feedback import cuda_clues
from grader.feedback.places import SMALLEST_BLOCK, Place, locate, overlap
from grader.submission.solution_cell import parsed
from grader.verdict import Mismatch
from grader.words import number


@dataclass(frozen=True)
class Clues:
    """Signs of a bug in the submission's source."""

    returns_value: bool = False  # from the entry point
    branches_on_block: bool = False  # with an `if` in a Triton kernel
    one_by_one: bool = False  # a Triton kernel loads single elements in a loop
    threads_in_grid: bool = False  # a Triton grid has two numbers, but the kernels use only the first axis
    whole_array: bool = False  # a Triton kernel's block is as long as the whole array
    endless: tuple[str, str] | None = None  # the condition of a `while` loop, and its names: the loop changes none
    bug: str = ""  # a sentence about a bug that makes a result wrong
    stray: tuple[str, str] | None = None  # why a kernel uses memory that is not its own, and what to do about it


_MOST_CHARACTERS = 20_000  # of a cell: the time of the search grows with the square of its length


def clues_in(source: str, entry: str) -> Clues:
    """The clues in a cell whose entry point is the function `entry`; none if it is not valid Python, or very long."""
    if len(source) > _MOST_CHARACTERS:
        return Clues()
    try:
        tree = parsed(source)
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) is str]
        kernels = [*_kernels(tree).values()] if "triton" in source else []
        return Clues(
            returns_value=any(_returns_value(each) for each in functions if each.name == entry),
            branches_on_block=any(map(_branches_on_block, kernels)),
            one_by_one=any(map(_one_by_one, kernels)),
            threads_in_grid=bool(kernels) and _two_in_grid(tree) and not any(map(_uses_other_axes, kernels)),
            whole_array=bool(kernels) and _whole_array(tree),
            endless=next(filter(None, map(_endless, ast.walk(tree))), None),
            bug=next(filter(None, map(cuda_clues.wrong_result, strings)), "") or wrong_result(tree),
            stray=next(filter(None, map(cuda_clues.stray_access, strings)), None) or stray_access(tree),
        )
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Clues()


def _returns_value(function: ast.FunctionDef) -> bool:
    """Whether it returns a value. Nested functions and `return kernel[grid](…)` do not count."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.Return) and node.value and not _is_none_or_launch(node.value):
            return True
        waiting += ast.iter_child_nodes(node)
    return False


def _is_none_or_launch(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return value.value is None
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Subscript)


def _branches_on_block(kernel: ast.FunctionDef) -> bool:
    """Whether an `if` compares a value that was computed from a `tl.arange`."""
    blocks: set[str] = set()
    for node in ast.walk(kernel):  # in line order, except that nested lines come later
        if isinstance(node, ast.Assign) and _holds_block(node.value, blocks):
            blocks |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return any(isinstance(node, ast.If) and _holds_block(node.test, blocks) for node in ast.walk(kernel))


def _holds_block(expression: ast.expr, blocks: set[str]) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id in blocks)
        or (isinstance(node, ast.Attribute) and node.attr == "arange")
        for node in ast.walk(expression)
    )


def _calls(node: ast.AST, *names: str) -> list[ast.Call]:
    """The calls of `….name(…)` within a node."""
    return [
        each
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in names
    ]


def _one_by_one(kernel: ast.FunctionDef) -> bool:
    loops = [node for node in ast.walk(kernel) if isinstance(node, ast.For | ast.While)]
    loads = [call for loop in loops for call in _calls(loop, "load") if ast.unparse(call.func) == "tl.load"]
    return bool(loads) and not _calls(kernel, "arange", "make_block_ptr")  # a descriptor's `load` takes a block


def _endless(node: ast.AST) -> tuple[str, str] | None:
    """The condition of a `while` loop that compares names, and these names, if nothing in the loop changes any."""
    if not (isinstance(node, ast.While) and isinstance(node.test, ast.Compare)):
        return None
    names = [each.id for each in ast.walk(node.test) if isinstance(each, ast.Name)]
    inner = list(ast.walk(node))
    changed = {each.id for each in inner if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    ends = any(isinstance(each, ast.Break | ast.Return | ast.Raise) for each in inner)
    reads_memory = any(
        isinstance(each, ast.Subscript | ast.Call | ast.Attribute | ast.List) for each in ast.walk(node.test)
    )
    if not names or changed.intersection(names) or ends or reads_memory:
        return None
    return ast.unparse(node.test), "` or `".join(dict.fromkeys(names))


def _two_in_grid(tree: ast.AST) -> bool:
    """Whether a launch has two or three numbers in its brackets, as in `kernel[blocks, threads](…)`."""
    launches = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    grids = (each.slice for each in launches if isinstance(each, ast.Subscript))
    return any(isinstance(grid, ast.Tuple) and len(grid.elts) > 1 for grid in grids)


def _whole_array(tree: ast.AST) -> bool:
    """Whether a block's length is computed from the number of elements, as in `next_power_of_2(x.numel())`."""
    counts = {
        target.id for node in ast.walk(tree) if isinstance(node, ast.Assign) and _calls(node.value, "numel")
        for target in node.targets if isinstance(target, ast.Name)
    }  # fmt: skip
    lengths = [argument for call in _calls(tree, "next_power_of_2") for argument in call.args]
    return any(_calls(each, "numel") or (isinstance(each, ast.Name) and each.id in counts) for each in lengths)


def _uses_other_axes(kernel: ast.FunctionDef) -> bool:
    axes = [ast.unparse(value) for call in _calls(kernel, "program_id", "num_programs")
            for value in (*call.args, *(keyword.value for keyword in call.keywords))]  # fmt: skip
    return any(axis != "0" for axis in axes)


_CLOSE = 1e-2  # a smaller relative error is lost precision rather than a wrong formula


@dataclass(frozen=True)
class Facts:
    """The facts that the rules test."""

    mismatch: Mismatch
    case: Case | None
    exercise: Exercise | None
    clues: Clues = field(default_factory=Clues)
    others: tuple[Mismatch, ...] = ()  # those of the other wrong cases

    @property
    def place(self) -> Place:
        return locate(self.mismatch)

    @property
    def at(self) -> str:
        return self.place.kind

    @property
    def cuda(self) -> bool:
        return self.exercise is not None and self.exercise.backend == "cuda"

    @property
    def guessed(self) -> bool:
        """Whether the suspected bug is guessed from the values: it is one of the exercise's."""
        suspects = self.exercise.suspects if self.exercise else ()
        return any(self.mismatch.suspect == each.sentence for each in suspects)

    @property
    def threads(self) -> bool:
        """Whether the kernel is written for threads, not for blocks as in Triton."""
        return self.exercise is not None and self.exercise.backend in ("cuda", "numba", "cupy")

    @property
    def kernel(self) -> bool:
        """Whether the exercise requires a kernel."""
        return self.exercise is None or self.exercise.backend != "torch"

    @property
    def answer(self) -> str:
        """The name of the first wrong answer, if the output holds answers to questions."""
        names, first = self.exercise.answers if self.exercise else (), self.mismatch.first_index
        main = self.case is None or not self.case.outputs or self.mismatch.output == self.case.outputs[0].name
        return names[first[0]] if names and main and first is not None else ""

    def said(self, value: str) -> str:
        """An answer's value: its word, if the exercise's answers are words."""
        words = dict(enumerate(self.exercise.answer_words if self.exercise else ()))
        word = words.get(int(value)) if value.isdecimal() else None
        return f'"{word}"' if word else number(value)

    @property
    def of_which(self) -> str:
        """The name of the output, if there are several."""
        return f" of `{self.mismatch.output}`" if self.case is not None and len(self.case.outputs) > 1 else ""

    @property
    def unwritten(self) -> bool:
        return self.mismatch.unwritten == self.mismatch.wrong

    @property
    def not_finite(self) -> bool:
        return self.mismatch.not_finite > 0

    @property
    def padding(self) -> int:
        arrays = self.case.arrays if self.case else ()
        return max((array.row_padding for array in arrays), default=0)

    @property
    def padded(self) -> bool:
        """Whether the kernel stepped by N over padded rows: the first row is right, the second is written but wrong."""
        stepped = self.mismatch.region_low[:1] == (1,) and not self.unwritten
        return self.padding > 0 and stepped and not self.run_on

    @property
    def run_on(self) -> bool:
        """Whether rows overwrote others: more elements were written than the output has, and some are wrong.

        A wrong stride cannot do that, because it writes each element once, wherever that is. On a GPU, rows are written
        concurrently, so any row may have been the last to write.
        """
        m = self.mismatch
        # Only among floats are unwritten elements known.
        counted = self.case is None or all("float" in array.dtype for array in self.case.outputs)
        several = len(m.shape) > 1 and m.shape[0] > 1 and 0 < m.wrong < m.total
        return counted and several and m.outside > max(m.unwritten, self._room)

    @property
    def wider(self) -> int:
        """The written elements' width as a multiple of the output's, or 0 if the writes do not show that."""
        m = self.mismatch
        times, rest = divmod(m.outside + m.total, m.total)
        blocks = m.outside % 32 == 0 or m.wrong < max(2, m.total - 1)  # of threads without a check of the bounds
        return times if self.threads and times in (2, 4, 8) and not rest and not blocks else 0

    @property
    def cut(self) -> int | None:
        """The first column that no row has, if all before it are written: a power of two, like a block's length."""
        m = self.mismatch
        if len(m.shape) != 2 or not 0 < m.unwritten < m.wrong or m.got == "never written":
            return None
        missing, rest = divmod(m.unwritten, m.shape[0])
        column = m.shape[1] - missing
        return column if not rest and column >= SMALLEST_BLOCK and column & (column - 1) == 0 else None

    @property
    def swapped(self) -> bool:
        """Whether x and y are swapped: a row and a column lack their ends, and matrices whole rows or whole columns.

        If the grid had only one block, matrices would lack both rows and columns.
        """
        lacking = [m for m in (self.mismatch, *self.others) if m.wrong and m.unwritten == m.wrong and len(m.shape) == 2]
        single_row = any(m.shape[0] == 1 < m.shape[1] for m in lacking)
        single_column = any(m.shape[1] == 1 < m.shape[0] for m in lacking)
        cut_both_ways = any(locate(m).kind in ("scattered", "corner", "mid_row") for m in lacking if min(m.shape) > 1)
        return self.cuda and single_row and single_column and not cut_both_ways and not self.nothing

    @property
    def nothing(self) -> bool:
        """Whether no element of any wrong case was written."""
        return all(m.unwritten == m.total for m in (self.mismatch, *self.others))

    @property
    def overlap(self) -> str:
        """The axis, "x" or "y", along which blocks overlap, or ""."""
        return overlap(self.mismatch, self.others)

    @property
    def smaller_unwritten(self) -> bool:
        """Whether a smaller case was not written at all, as with an empty grid; one element per case does not count."""
        return any(m.unwritten == m.total < self.mismatch.total for m in self.others) and any(
            m.unwritten > 1 for m in (self.mismatch, *self.others)
        )

    @property
    def close(self) -> bool:
        """Whether the first wrong element is nearly right."""
        m = self.mismatch
        try:
            got, expected = float(m.got), float(m.expected)
        except ValueError:
            return False
        if m.not_finite or m.unwritten or not (isfinite(got) and isfinite(expected)):
            return False
        return abs(got - expected) <= _CLOSE * abs(expected)

    @property
    def double(self) -> bool:
        """Whether the output of the case is float64."""
        return self.case is not None and any(array.dtype == "float64" for array in self.case.outputs)

    @property
    def side(self) -> str:
        """The place of the first element written outside: "before" the output, "between" its rows, or "after".

        "beyond" means between the rows and past the end: more elements than fit between the rows.
        """
        offset = self.mismatch.outside_first_offset
        if offset is None:
            return "around"
        if offset < 0:
            return "before"
        if offset >= self.mismatch.total + self._room:
            return "after"
        return "between" if self.mismatch.outside <= self._room else "beyond"

    @property
    def _room(self) -> int:
        """The number of elements between the rows of the output."""
        shape = self.mismatch.shape
        arrays = [a for a in (self.case.outputs if self.case else ()) if a.name == self.mismatch.output]
        padding = arrays[0].row_padding if arrays else 0
        return (self.mismatch.total // shape[-1] - 1) * padding if len(shape) > 1 else 0


def outside_of(mismatch: Mismatch, case: Case | None) -> str:
    """The side of the writes outside: "before" the output, "between" its rows, "after" it, or empty if unknown."""
    return {"around": "", "beyond": "after"}.get(side := Facts(mismatch, case, None).side, side)


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
                        "ones become negative or wrap around to 0.",
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

"""Facts about a wrong output and the submission's source, for the questions in `questions.py`.

The source is searched for bugs only once the output is wrong or the launch has failed, so that right work is never
suspected.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from math import isfinite

from grader.exercise import Case, Exercise
from grader.feedback import cuda_clues
from grader.feedback.launch_clues import cut_addresses, stray_access, triton_kernels, wrong_result
from grader.feedback.places import SMALLEST_BLOCK, Place, locate, overlap
from grader.submission.solution_cell import parsed
from grader.verdict import Mismatch
from grader.words import number


@dataclass(frozen=True)
class Clues:
    """Signs of a bug in the submission's source."""

    returns_value: bool = False  # from the entry point
    rebinds_out: bool = False  # the entry point assigns another tensor to its parameter `out`
    branches_on_block: bool = False  # with an `if` in a Triton kernel
    one_by_one: bool = False  # a Triton kernel loads single elements in a loop
    threads_in_grid: bool = False  # a Triton grid has two numbers, but the kernels use only the first axis
    whole_array: bool = False  # a Triton kernel's block is as long as the whole array
    masked_stores: bool = False  # every store of the Triton kernels has a mask
    either_bound: bool = False  # a bounds check in CUDA C++ joins its conditions the wrong way
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
        kernels = [*triton_kernels(tree).values()] if "triton" in source else []
        return Clues(
            returns_value=any(_returns_value(each) for each in functions if each.name == entry),
            rebinds_out=any(_rebinds_out(each) for each in functions if each.name == entry),
            branches_on_block=any(map(_branches_on_block, kernels)),
            one_by_one=any(map(_one_by_one, kernels)),
            threads_in_grid=bool(kernels) and _two_in_grid(tree) and not any(map(_uses_other_axes, kernels)),
            whole_array=bool(kernels) and _whole_array(tree),
            masked_stores=bool(kernels) and all(map(_masks_stores, kernels)),
            either_bound=any(map(cuda_clues.either_bound, strings)),
            endless=next(filter(None, map(_endless, ast.walk(tree))), None),
            bug=next(filter(None, map(cuda_clues.wrong_result, strings)), "") or wrong_result(tree, strings),
            stray=cut_addresses(tree, strings)
            or next(filter(None, map(cuda_clues.stray_access, strings)), None)
            or stray_access(tree),
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


def _rebinds_out(function: ast.FunctionDef) -> bool:
    assigned = (node for node in ast.walk(function) if isinstance(node, ast.Assign))
    named = any(
        isinstance(target, ast.Name) and target.id == "out"
        for node in assigned
        if not ast.unparse(node.value).startswith("out.")  # a view, such as `out.view(-1)`
        for target in node.targets
    )
    return named and any(each.arg == "out" for each in function.args.args)


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


def _masks_stores(kernel: ast.FunctionDef) -> bool:
    stores = [call for call in _calls(kernel, "store") if ast.unparse(call.func) == "tl.store"]
    return bool(stores) and all(
        len(call.args) > 2 or any(word.arg == "mask" for word in call.keywords) for call in stores
    )


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
    def own_padding(self) -> int:
        """The padding of the rows of the wrong output."""
        arrays = [array for array in (self.case.outputs if self.case else ()) if array.name == self.mismatch.output]
        return arrays[0].row_padding if arrays else 0

    @property
    def integers(self) -> bool:
        """Whether the output holds integers."""
        return self.case is not None and not any("float" in array.dtype for array in self.case.outputs)

    @property
    def causal(self) -> bool:
        """Whether row 0 of an attention sees a single key, so that it is right whatever is wrong with the others."""
        return self.case is not None and "causal" in self.case.name

    @property
    def as_many_rows_as_columns(self) -> bool:
        """Whether as many rows were written as there are columns."""
        m = self.mismatch
        return len(m.shape) == 2 and m.region_low[:1] == (m.shape[1],) and m.wrong == m.total - m.shape[1] ** 2

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
        return (self.mismatch.total // shape[-1] - 1) * self.own_padding if len(shape) > 1 else 0


def outside_of(mismatch: Mismatch, case: Case | None) -> str:
    """The side of the writes outside: "before" the output, "between" its rows, "after" it, or empty if unknown."""
    return {"around": "", "beyond": "after"}.get(side := Facts(mismatch, case, None).side, side)

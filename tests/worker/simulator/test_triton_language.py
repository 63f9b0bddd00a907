"""The rewriting of kernels for Triton's interpreter and by Triton itself."""

from __future__ import annotations

import ast

from grader.worker.simulator.triton_language import _Rewriter


class _OfTriton(ast.NodeTransformer):
    """Like Triton 3.9's, it rewrites what is assigned, too."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        node.value = self.visit(node.value)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        return ast.Call(ast.Name("compared"), [node], [])


def test_each_of_the_two_rewrites_an_assignment_once() -> None:
    """Conditions and loops are rewritten at any depth, and Triton's part comes after."""
    written = "for i in range(a < b):\n    mask = a < b and not c"
    expected = (
        "for i in loop_indices(range(compared(a < b))):\n"
        "    mask = all_evaluated('logical_and', lambda: compared(a < b), lambda: negated(c))"
    )
    assert ast.unparse(_Rewriter(_OfTriton()).visit(ast.parse(written))) == expected

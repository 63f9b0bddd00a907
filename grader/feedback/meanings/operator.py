"""Errors of PyTorch's operators: their registration, their checks, and their way through the compiler."""

from __future__ import annotations

from grader.feedback.meanings.meaning import Meaning

__all__ = ["OPERATOR"]

OPERATOR: tuple[Meaning, ...] = (
    Meaning(
        r"no fake impl registered for|Operator does not support running with fake tensors",
        "The operator has no fake kernel, so nobody knows the shape of its result without running it.",
        "Register one with `register_fake`: a function of the same arguments that returns an empty tensor like the "
        "result. The operator of the gradient needs one, too.",
    ),
    Meaning(
        r"found mismatched tensor metadata: (.+?)!?(?: \(scroll.*)?$",
        "The fake kernel describes another tensor than the real one makes: {0}.",
        "Give it the shape, the type and the strides of the result. A result that is contiguous whatever `x` is: "
        "`x.new_empty(x.shape)`.",
    ),
    Meaning(
        r"Argument (\w+) is not defined as mutable but was mutated",
        "The operator writes into `{0}`, and its registration says that it writes into nothing.",
        'Write into a new tensor; or, if it is meant to work in place, register it with `mutates_args=("{0}",)`.',
    ),
    Meaning(
        r"must not also be an input to this custom operator|may not alias any inputs",
        "The operator returned its input. PyTorch takes each result for a new tensor, and would reuse or change the "
        "one behind the other's back.",
        "Make the result with `torch.empty_like`, and write into that.",
    ),
    Meaning(
        r"no autograd formula was registered",
        "The operator has no gradient.",
        "Register one: `register_autograd(gradient, setup_context=…)`.",
    ),
    Meaning(
        r"Cannot access data pointer of Tensor",
        "Kernels were launched where the compiler passes tensors without memory: it only wants to know which operators "
        "there are.",
        "Launch kernels inside of an operator, with `torch.library.custom_op`; the kernel of the gradient needs an "
        "operator of its own, which the gradient calls.",
    ),
    Meaning(
        r"torch\.compile cannot make one graph",
        "The compiler met a call that it cannot see into, and its graph ends there.",
        "Call the registered operator, and nothing else that reaches the kernel: no `ctypes`, no `data_ptr()` outside "
        "of it.",
    ),
    Meaning(
        r"gradcheck says: Backward is not reentrant",
        "The same gradient, asked for twice, came out differently.",
        "Does every element of the result get written, and in float64 as well?",
    ),
    Meaning(
        r"gradcheck says|Jacobian mismatch",
        "The gradient is not what differences of the function give.",
        "Are both right in float64, down to its last digits? A kernel or a copy in float32 is too coarse for "
        "differences.",
    ),
    Meaning(
        r"returned an incorrect number of gradients",
        "The gradient function returned too few or too many values.",
        "It returns one for each argument of the operator, and None for one that gets no gradient, such as a number.",
    ),
    Meaning(
        r"returned a gradient different than None at position",
        "The gradient function returned a gradient for an argument that is no tensor.",
        "Return None in its place.",
    ),
    Meaning(
        r"'GeneratedBackwardFor\w+' object has no attribute '(\w+)'",
        "The gradient function asks for `ctx.{0}`, and nobody put it there.",
        "Keep it while the operator runs forwards: `ctx.{0} = …` in the function that is given as `setup_context`.",
    ),
    Meaning(
        r"got an unexpected keyword argument '(?:inputs|output)'",
        "The function that is given as `setup_context` has other parameters than it is called with.",
        "Its parameters are `ctx, inputs, output`, by these names.",
    ),
    Meaning(
        r"infer_schema\(func\): (?:Parameter \w+ must have a type|No return type)",
        "An operator's schema is made from its type hints, and one is missing.",
        "Give every parameter and the result a type: `def f(x: torch.Tensor, slope: float) -> torch.Tensor`.",
    ),
)

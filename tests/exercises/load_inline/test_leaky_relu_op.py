"""The oracle of the operator equals PyTorch's leaky ReLU."""

import pytest
import torch

from grader.exercises.load_inline.leaky_relu_op import LEAKY_RELU_OP as EXERCISE
from grader.judge.checking.buffers import generator
from grader.protocol.channel import from_bytes

each_case = pytest.mark.parametrize("case", EXERCISE.simulator_cases, ids=lambda case: case.name)


@each_case
def test_the_oracle_agrees_with_autograd(case):
    """Values and gradients equal those of `torch.nn.functional.leaky_relu` in every case."""
    inputs = EXERCISE.draw(case, generator("cpu"), None)
    x, grad = inputs["x"].double().requires_grad_(), inputs["grad"].double()
    if from_bytes(inputs["how"]).get("grad") == "expanded":
        grad = grad[0, 0].expand(grad.shape)
    result = torch.nn.functional.leaky_relu(x, inputs["slope"].item())
    result.backward(grad)
    out, grad_x, *_ = EXERCISE.oracle({name: value.double() for name, value in inputs.items()})
    assert torch.allclose(out, result.detach(), rtol=1e-12)
    assert torch.allclose(grad_x, x.grad, rtol=1e-12)


@each_case
def test_the_first_elements_tell_the_suspects_apart(case):
    """If there is room, x is positive, negative with both signs of the gradient, and 0 if allowed."""
    for _ in range(20):
        inputs = EXERCISE.draw(case, generator("cpu"), None)
        x, grad = inputs["x"].flatten()[:4].sign().tolist(), inputs["grad"].flatten()[:4].sign().tolist()
        if inputs["x"].numel() == 1:
            assert (x, grad) == ([1], [1])
        else:
            assert (x[:3], grad[:3]) == ([1, -1, -1], [1, 1, -1])
            assert (x[3] == 0) == ("gradcheck" not in case.name)


def test_differences_are_taken_away_from_the_kink():
    """gradcheck's step must not cross 0."""
    case = next(case for case in EXERCISE.simulator_cases if "gradcheck" in case.name)
    for _ in range(50):
        assert EXERCISE.draw(case, generator("cpu"), None)["x"].abs().min() > 1e-3

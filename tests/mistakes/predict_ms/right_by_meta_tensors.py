# right: tensors without memory say their own size; the exact number of additions
# runs: anywhere
import torch


def tensors_of(operation):
    """Inputs and result, on the device that stores nothing."""

    def tensor(shape, dtype):
        return torch.empty(shape, dtype=getattr(torch, dtype), device="meta")

    dtype = operation["dtype"]
    if operation["kind"] == "matmul":
        batch, m, n, k = operation["batch"], operation["m"], operation["n"], operation["k"]
        return [tensor((batch, m, k), dtype), tensor((batch, k, n), dtype), tensor((batch, m, n), dtype)]
    found = [tensor(operation["shape"], dtype)]
    if operation["kind"] == "add":
        found.append(tensor(operation["shape"], dtype))
    if operation["kind"] == "add_row":
        found.append(tensor(operation["shape"][-1:], dtype))
    result = [] if operation["kind"] == "sum" else operation["shape"]
    return [*found, tensor(result, operation.get("to", dtype))]


def predict_ms(operation, machine):
    nbytes = sum(tensor.numel() * tensor.element_size() for tensor in tensors_of(operation))
    flops = 0
    if operation["kind"] == "matmul":
        flops = operation["batch"] * operation["m"] * operation["n"] * (2 * operation["k"] - 1)
    memory_ms = nbytes / machine["bandwidth_gbps"] / 1e6
    compute_ms = flops / machine["tflops"] / 1e9
    return max(memory_ms, compute_ms)

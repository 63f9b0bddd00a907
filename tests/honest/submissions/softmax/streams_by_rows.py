# honest: upper and lower rows on two streams, joined by wait_stream
# exercise: softmax
# runs: gpu
# gates: may miss
import torch
import triton
import triton.language as tl

streams = None


@triton.jit
def kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    x = tl.load(x_ptr + row * x_stride + at, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_stride + at, numerator / tl.sum(numerator, axis=0), mask=mask)


def softmax(x, out):
    global streams
    streams = streams or (torch.cuda.Stream(), torch.cuda.Stream(priority=-1))
    block = triton.next_power_of_2(x.shape[1])
    warps = min(max(block // 512, 1), 32)
    for stream, x_part, out_part in zip(streams, x.tensor_split(2), out.tensor_split(2)):
        if not len(x_part):
            continue
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            kernel[(len(x_part),)](
                x_part, out_part, x.stride(0), out.stride(0), x.shape[1], BLOCK=block, num_warps=warps
            )
        torch.cuda.current_stream().wait_stream(stream)

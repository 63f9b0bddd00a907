# honest: halves of the vectors on two streams, joined by events
# exercise: vector_add
# runs: gpu
# gates: passes
import torch
import triton
import triton.language as tl

STREAMS = [torch.cuda.Stream() for _ in range(2)]


@triton.jit
def add_part(x_ptr, y_ptr, out_ptr, begin, end, BLOCK: tl.constexpr):
    at = begin + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < end
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


def vector_add(x, y, out):
    n = out.numel()
    half = triton.cdiv(n, 2048) * 1024
    ready = torch.cuda.Event()
    ready.record()
    for stream, (begin, end) in zip(STREAMS, [(0, min(half, n)), (half, n)]):
        if begin >= end:
            continue
        stream.wait_event(ready)
        with torch.cuda.stream(stream):
            add_part[(triton.cdiv(end - begin, 1024),)](x, y, out, begin, end, BLOCK=1024)
            done = torch.cuda.Event()
            done.record(stream)
        torch.cuda.current_stream().wait_event(done)

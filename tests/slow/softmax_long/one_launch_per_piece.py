# slow: the host loops over pieces of 2,048 columns, twice, with one launch for each
# cause: many launches
import torch
import triton
import triton.language as tl

PIECE = 2048


@triton.jit
def update(x, maxima, sums, pitch, begin, columns, PIECE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = begin + tl.arange(0, PIECE)
    piece = tl.load(x + row * pitch + c, mask=c < columns, other=float("-inf"))
    old = tl.load(maxima + row)
    new = tl.maximum(old, tl.max(piece, axis=0))
    rescaled = tl.load(sums + row) * tl.exp(old - new)
    tl.store(sums + row, rescaled + tl.sum(tl.exp(piece - new), axis=0))
    tl.store(maxima + row, new)


@triton.jit
def write(x, out, maxima, sums, pitch, out_pitch, begin, columns, PIECE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = begin + tl.arange(0, PIECE)
    piece = tl.load(x + row * pitch + c, mask=c < columns, other=0.0)
    weight = tl.exp(piece - tl.load(maxima + row)) / tl.load(sums + row)
    tl.store(out + row * out_pitch + c, weight, mask=c < columns)


def softmax_long(x, out):
    rows, columns = x.shape
    maxima = torch.full((rows,), -3.4e38, device=x.device)
    sums = torch.zeros(rows, device=x.device)
    starts = range(0, columns, PIECE)
    for begin in starts:
        update[(rows,)](x, maxima, sums, x.stride(0), begin, columns, PIECE=PIECE)
    for begin in starts:
        write[(rows,)](x, out, maxima, sums, x.stride(0), out.stride(0), begin, columns, PIECE=PIECE)

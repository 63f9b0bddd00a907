# slow: a piece is every 16th or 64th element of the row, not a run of neighbours
# cause: wasted sectors
import triton
import triton.language as tl


@triton.jit
def softmax_interleaved(X, Y, sx, sy, n, parts, LANES: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    X += r * sx
    Y += r * sy
    lane = tl.arange(0, LANES) * parts
    m = -3.4e38
    d = 0.0
    for part in range(parts):
        col = lane + part
        v = tl.load(X + col, mask=col < n, other=-float("inf"))
        m_new = tl.maximum(m, tl.max(v, axis=0))
        d = d * tl.exp(m - m_new) + tl.sum(tl.exp(v - m_new), axis=0)
        m = m_new
    for part in range(parts):
        col = lane + part
        v = tl.load(X + col, mask=col < n, other=0.0)
        tl.store(Y + col, tl.exp(v - m) / d, mask=col < n)


def softmax_long(x, out):
    n = x.shape[1]
    lanes = min(4096, triton.next_power_of_2(n))
    parts = triton.cdiv(n, lanes)
    softmax_interleaved[(x.shape[0],)](x, out, x.stride(0), out.stride(0), n, parts, LANES=lanes, num_warps=16)

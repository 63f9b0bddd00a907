# right: Triton, a program for each block of frequencies
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def kernel(t_ptr, y_ptr, freqs_ptr, out_ptr, samples, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    w = tl.load(freqs_ptr + at, mask=at < count, other=1.0)
    xc = tl.zeros((BLOCK,), tl.float32)
    xs = tl.zeros((BLOCK,), tl.float32)
    cc = tl.zeros((BLOCK,), tl.float32)
    cs = tl.zeros((BLOCK,), tl.float32)
    for j in range(samples):
        y, phase = tl.load(y_ptr + j), w * tl.load(t_ptr + j)
        c, s = tl.cos(phase), tl.sin(phase)
        xc += y * c
        xs += y * s
        cc += c * c
        cs += c * s
    a, b = cc - 0.5 * samples, cs  # half of the real and the imaginary part of the sum of exp(2iwt), as a vector
    length = tl.maximum(tl.sqrt(a * a + b * b), 1e-20)
    c2, s2 = a / length, b / length  # of 2 w tau
    c = tl.sqrt(tl.maximum(0.5 * (1 + c2), 0.0))
    s = tl.where(s2 < 0, -1.0, 1.0) * tl.sqrt(tl.maximum(0.5 * (1 - c2), 0.0))
    p, q = c * xc + s * xs, c * xs - s * xc
    power = 0.5 * (p * p / (0.5 * samples + length) + q * q / (0.5 * samples - length))
    tl.store(out_ptr + at, power, mask=at < count)


def ls_open(t, y, freqs, out):
    kernel[(triton.cdiv(freqs.numel(), 128),)](t, y, freqs, out, t.numel(), freqs.numel(), BLOCK=128)

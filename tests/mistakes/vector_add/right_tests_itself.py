# right: tests itself on inputs of a seeded generator of the GPU, and times itself
# runs: anywhere
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n), mask=i < n)


def vector_add(x, y, out):
    n = x.numel()
    grid = (triton.cdiv(n, 1024), 1, 1)
    kernel[grid](x, y, out, n, B=1024)


def test():
    g = torch.Generator(device="cuda").manual_seed(7)
    a = torch.randn(1000, generator=g, device="cuda")
    b = torch.randn(1000, generator=g, device="cuda")
    c = torch.empty_like(a)
    vector_add(a, b, c)
    torch.testing.assert_close(c, a + b)
    triton.testing.assert_close(c.cpu(), (a.cpu() + b.cpu()))
    ms = triton.testing.do_bench(lambda: vector_add(a, b, c), warmup=1, rep=5)
    gbps = 3 * a.numel() * a.element_size() * 1e-9 / (ms * 1e-3)
    print(f"{gbps:.1f} GB/s on {torch.cuda.get_device_name(torch.cuda.current_device())}")
    torch.cuda.empty_cache()
    torch.cuda.synchronize(device=a.device)


test()

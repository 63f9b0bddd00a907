"""The product in Triton. `warp_specialize` has the compiler divide the loop between warps that copy and multiply."""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, out_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
           GROUP: tl.constexpr):  # fmt: skip
    #: copy
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BLOCK_K, BLOCK_N])
    #: store
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    #: rest
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for tile in range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0)):
        first = tile // (GROUP * tiles_n) * GROUP
        height = min(tiles_m - first, GROUP)
        inside = tile % (GROUP * tiles_n)
        row, column = (first + inside % height) * BLOCK_M, inside // height * BLOCK_N
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        #: barrier
        for k in tl.range(0, K, BLOCK_K, warp_specialize=True):
            #: copy
            left, right = a.load([row, k]), b.load([k, column])
            #: multiply
            total = tl.dot(left, right, total)
        #: store
        out.store([row, column], total.to(tl.float16))


#: rest
def product(a, b, out):
    def memory(size, align, stream):  # for the descriptors, which the kernel makes itself
        return torch.empty(size, dtype=torch.int8, device=a.device)

    triton.set_allocator(memory)
    sms = torch.cuda.get_device_properties(a.device).multi_processor_count
    sizes = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP": 16}
    kernel[(sms,)](a, b, out, *out.shape, a.shape[1], **sizes, num_warps=4, num_stages=3)

# right: PyTorch's own style: accessors, AT_DISPATCH, the current stream, a device guard, checks by macros
# runs: anywhere

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#define CHECK_CUDA(x) TORCH_CHECK(x.device().is_cuda(), #x " must be a CUDA tensor")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
#define CHECK_INPUT(x) CHECK_CUDA(x); CHECK_CONTIGUOUS(x)

template <typename scalar_t>
__global__ void square_kernel(
    const torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> x,
    torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> out) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
    if (c < x.size(1)) out[r][c] = x[r][c] * x[r][c];
}

void square(torch::Tensor x, torch::Tensor out) {
    CHECK_INPUT(out);
    CHECK_CUDA(x);
    const at::cuda::CUDAGuard guard(x.device());
    const int threads = 1024;
    const dim3 blocks((x.size(1) + threads - 1) / threads, x.size(0));
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "square", ([&] {
        square_kernel<scalar_t><<<blocks, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
            x.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>(),
            out.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>());
    }));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

module = load_inline(
    "square_matrix_ext",
    "void square(torch::Tensor x, torch::Tensor out);",
    cuda_source,
    functions=["square"],
    extra_cuda_cflags=["-O2", "--use_fast_math"],
)


def square_matrix(x, out):
    module.square(x, out)

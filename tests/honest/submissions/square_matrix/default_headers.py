# honest: load_inline as in its documentation: tensors, default headers, functions=[…], the slowest build of all
# exercise: square_matrix
# runs: anywhere
# gates: passes
import torch
from torch.utils.cpp_extension import load_inline

cuda_source = '''
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void square_matrix_kernel(const float* __restrict__ matrix, float* __restrict__ result, int height, int width) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int first = blockIdx.y * 8;
    #pragma unroll
    for (int row = first; row < first + 8; ++row) {
        if (row < height && column < width) {
            const float value = matrix[row * width + column];
            result[row * width + column] = value * value;
        }
    }
}

torch::Tensor square_into(torch::Tensor matrix, torch::Tensor result) {
    TORCH_CHECK(matrix.is_cuda(), "matrix must be on the GPU");
    TORCH_CHECK(matrix.sizes() == result.sizes());
    const auto height = matrix.size(0), width = matrix.size(1);
    const dim3 block(128);
    const dim3 grid((width + 127) / 128, (height + 7) / 8);
    square_matrix_kernel<<<grid, block, 0, c10::cuda::getCurrentCUDAStream()>>>(
        matrix.data_ptr<float>(), result.data_ptr<float>(), height, width);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return result;
}
'''

cpp_source = "torch::Tensor square_into(torch::Tensor matrix, torch::Tensor result);"

module = None


def square_matrix(x: torch.Tensor, out: torch.Tensor):
    global module
    if module is None:
        module = load_inline(
            name="square_matrix_extension",
            cpp_sources=cpp_source,
            cuda_sources=cuda_source,
            functions=["square_into"],
            with_cuda=True,
            extra_cuda_cflags=["-O2"],
        )
    return module.square_into(x, out)

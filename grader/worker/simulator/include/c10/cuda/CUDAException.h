// In PyTorch's place: the same macros over the errors of the CPU's launches.
#pragma once
#pragma GCC system_header
#include <c10/util/Exception.h>

#include "cuda_on_cpu.h"

#define C10_CUDA_CHECK(expression) \
    do { \
        const cudaError_t cuda_on_cpu_error = (expression); \
        TORCH_CHECK(cuda_on_cpu_error == cudaSuccess, "CUDA error: ", cudaGetErrorString(cuda_on_cpu_error)); \
    } while (0)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define AT_CUDA_CHECK(expression) C10_CUDA_CHECK(expression)

// In PyTorch's place: there is one device.
#pragma once
#pragma GCC system_header
#include <c10/cuda/CUDAStream.h>

namespace c10 {
namespace cuda {
struct CUDAGuard {
    template <class Device>
    explicit CUDAGuard(const Device&) {}
};
struct OptionalCUDAGuard {
    OptionalCUDAGuard() = default;
    template <class Device>
    explicit OptionalCUDAGuard(const Device&) {}
};
}  // namespace cuda
}  // namespace c10
namespace at {
namespace cuda {
using c10::cuda::CUDAGuard;
using c10::cuda::OptionalCUDAGuard;
}  // namespace cuda
}  // namespace at

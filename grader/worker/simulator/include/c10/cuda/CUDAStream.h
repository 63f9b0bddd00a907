// In PyTorch's place: there is one stream, and it is done as soon as it is asked.
#pragma once
#pragma GCC system_header
#include <c10/cuda/CUDAFunctions.h>

namespace c10 {
namespace cuda {
struct CUDAStream {
    cudaStream_t stream() const { return nullptr; }
    operator cudaStream_t() const { return nullptr; }
    void synchronize() const { cudaDeviceSynchronize(); }
    bool query() const { return true; }
    int priority() const { return 0; }
    bool operator==(const CUDAStream&) const { return true; }
};
inline CUDAStream getCurrentCUDAStream(int = -1) { return {}; }
inline CUDAStream getDefaultCUDAStream(int = -1) { return {}; }
}  // namespace cuda
}  // namespace c10
namespace at {
namespace cuda {
using c10::cuda::CUDAStream;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::getDefaultCUDAStream;
}  // namespace cuda
}  // namespace at

// In PyTorch's place.
#pragma once
#pragma GCC system_header
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

namespace at {
namespace cuda {
inline cudaDeviceProp* getCurrentDeviceProperties() {
    static cudaDeviceProp properties;
    return &properties;
}
inline cudaDeviceProp* getDeviceProperties(c10::DeviceIndex) { return getCurrentDeviceProperties(); }
inline int warp_size() { return 32; }
}  // namespace cuda
}  // namespace at

// In PyTorch's place: there is one device.
#pragma once
#pragma GCC system_header
#include <c10/core/Device.h>
#include <c10/cuda/CUDAException.h>

namespace c10 {
namespace cuda {
inline DeviceIndex device_count() noexcept { return 1; }
inline DeviceIndex current_device() { return 0; }
inline void set_device(DeviceIndex, bool = false) {}
inline void device_synchronize() { C10_CUDA_CHECK(cudaDeviceSynchronize()); }
inline void stream_synchronize(cudaStream_t stream) { C10_CUDA_CHECK(cudaStreamSynchronize(stream)); }
}  // namespace cuda
}  // namespace c10

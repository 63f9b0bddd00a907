// The words that CUDA adds to C++ and its vector types, with CUDA's sizes and alignments.
#pragma once
#pragma GCC system_header

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// The simulator's own variables: one for all parts of a library, and not those of another library.
#define CUDA_ON_CPU_STATE __attribute__((visibility("hidden"))) inline

// The simulator's own functions: their accesses are not a kernel's.
#define CUDA_ON_CPU_UNSEEN __attribute__((no_sanitize("thread", "alignment", "bounds", "signed-integer-overflow")))

#define __global__
#define __device__
#define __host__
#define __managed__
#define __grid_constant__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)

namespace cuda_on_cpu {
template <class T>
struct IsVector {
    static constexpr bool value = false;
};
}  // namespace cuda_on_cpu

#define CUDA_ON_CPU_VECTORS(name, scalar, align2, align4) \
    struct name##1 { scalar x; }; \
    struct __attribute__((aligned(align2))) name##2 { scalar x, y; }; \
    struct name##3 { scalar x, y, z; }; \
    struct __attribute__((aligned(align4))) name##4 { scalar x, y, z, w; }; \
    static inline name##1 make_##name##1(scalar x) { return {x}; } \
    static inline name##2 make_##name##2(scalar x, scalar y) { return {x, y}; } \
    static inline name##3 make_##name##3(scalar x, scalar y, scalar z) { return {x, y, z}; } \
    static inline name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w) { return {x, y, z, w}; } \
    CUDA_ON_CPU_IS_VECTOR(name##1) CUDA_ON_CPU_IS_VECTOR(name##2) CUDA_ON_CPU_IS_VECTOR(name##3) CUDA_ON_CPU_IS_VECTOR(name##4)
#define CUDA_ON_CPU_IS_VECTOR(name) \
    template <> \
    struct cuda_on_cpu::IsVector<name> { static constexpr bool value = true; };

CUDA_ON_CPU_VECTORS(char, signed char, 2, 4)
CUDA_ON_CPU_VECTORS(uchar, unsigned char, 2, 4)
CUDA_ON_CPU_VECTORS(short, short, 4, 8)
CUDA_ON_CPU_VECTORS(ushort, unsigned short, 4, 8)
CUDA_ON_CPU_VECTORS(int, int, 8, 16)
CUDA_ON_CPU_VECTORS(uint, unsigned int, 8, 16)
CUDA_ON_CPU_VECTORS(long, long, 16, 16)
CUDA_ON_CPU_VECTORS(ulong, unsigned long, 16, 16)
CUDA_ON_CPU_VECTORS(longlong, long long, 16, 16)
CUDA_ON_CPU_VECTORS(ulonglong, unsigned long long, 16, 16)
CUDA_ON_CPU_VECTORS(float, float, 8, 16)
CUDA_ON_CPU_VECTORS(double, double, 16, 16)

namespace cuda_on_cpu {

// Unwritten memory is NaN in every floating-point type, so that it does not pass for zero. It differs from the NaN that
// the arbiter puts into outputs, so that an output computed from it does not count as never written.
constexpr uint64_t nobodys = 0xFFF9FFF9FFF9FFF9;

CUDA_ON_CPU_UNSEEN static inline void forget(void* memory, size_t bytes) {
    for (size_t i = 0; i < bytes; i += sizeof nobodys)
        memcpy(static_cast<char*>(memory) + i, &nobodys, bytes - i < sizeof nobodys ? bytes - i : sizeof nobodys);
}

}  // namespace cuda_on_cpu

#ifdef CUDA_ON_CPU_TORCH  // PyTorch defines it for CUDA's compiler alone
namespace at {
template <typename T>
struct RestrictPtrTraits {
    typedef T* __restrict__ PtrType;
};
}  // namespace at
#endif

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};

// Of the thread that runs now; the scheduler sets them whenever it switches.
[[maybe_unused]] static uint3 threadIdx, blockIdx;
[[maybe_unused]] static dim3 blockDim, gridDim;
[[maybe_unused]] static constexpr int warpSize = 32;

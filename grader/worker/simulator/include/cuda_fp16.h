// In CUDA's place: half precision, with CUDA's switches for its operators and conversions.
#pragma once
#pragma GCC system_header
#include "cuda_on_cpu.h"
#include "cuda_on_cpu/float16.h"

namespace cuda_on_cpu {
struct OfHalf {
#ifdef __CUDA_NO_HALF_CONVERSIONS__
    static constexpr bool conversions = false;
#else
    static constexpr bool conversions = true;
#endif
#ifdef __CUDA_NO_HALF_OPERATORS__
    static constexpr bool operators = false;
#else
    static constexpr bool operators = true;
#endif
#ifdef __CUDA_NO_HALF2_OPERATORS__
    static constexpr bool pair_operators = false;
#else
    static constexpr bool pair_operators = true;
#endif
};
}  // namespace cuda_on_cpu

typedef cuda_on_cpu::Float16<5, cuda_on_cpu::OfHalf> __half;
typedef cuda_on_cpu::Float16Pair<__half, cuda_on_cpu::OfHalf> __half2;
typedef __half half;
typedef __half2 half2;
CUDA_ON_CPU_FLOAT16(__half, __half2, half, half2, half, half2)

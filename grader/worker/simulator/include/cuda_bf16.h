// In CUDA's place: bfloat16, with CUDA's switches for its operators and conversions.
#pragma once
#pragma GCC system_header
#include "cuda_on_cpu.h"
#include "cuda_on_cpu/float16.h"

namespace cuda_on_cpu {
struct OfBfloat16 {
#ifdef __CUDA_NO_BFLOAT16_CONVERSIONS__
    static constexpr bool conversions = false;
#else
    static constexpr bool conversions = true;
#endif
#ifdef __CUDA_NO_BFLOAT16_OPERATORS__
    static constexpr bool operators = false;
#else
    static constexpr bool operators = true;
#endif
#ifdef __CUDA_NO_BFLOAT162_OPERATORS__
    static constexpr bool pair_operators = false;
#else
    static constexpr bool pair_operators = true;
#endif
};
}  // namespace cuda_on_cpu

typedef cuda_on_cpu::Float16<8, cuda_on_cpu::OfBfloat16> __nv_bfloat16;
typedef cuda_on_cpu::Float16Pair<__nv_bfloat16, cuda_on_cpu::OfBfloat16> __nv_bfloat162;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
CUDA_ON_CPU_FLOAT16(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162, bfloat16, bfloat162)

// CUDA's arithmetic. The fast functions are computed accurately: their error on a GPU does not show here.
#pragma once
#pragma GCC system_header

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <type_traits>

namespace cuda_on_cpu {
template <class To, class From>
static inline To bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
}  // namespace cuda_on_cpu

// glibc declares some of these names, so they cannot be functions.
#define __expf(x) ::expf(x)
#define __exp10f(x) ::exp10f(x)
#define __logf(x) ::logf(x)
#define __log2f(x) ::log2f(x)
#define __log10f(x) ::log10f(x)
#define __sinf(x) ::sinf(x)
#define __cosf(x) ::cosf(x)
#define __tanf(x) ::tanf(x)
#define __powf(x, y) ::powf(x, y)
#define __sincosf(x, sine, cosine) ::sincosf(x, sine, cosine)
#define __fdividef(x, y) ((float)(x) / (float)(y))
#define __saturatef(x) ::fminf(::fmaxf(x, 0.0f), 1.0f)
#define __frcp_rn(x) (1.0f / (float)(x))
#define __fsqrt_rn(x) ::sqrtf(x)
#define __frsqrt_rn(x) (1.0f / ::sqrtf(x))
#define __fadd_rn(x, y) ((float)(x) + (float)(y))
#define __fsub_rn(x, y) ((float)(x) - (float)(y))
#define __fmul_rn(x, y) ((float)(x) * (float)(y))
#define __fdiv_rn(x, y) ((float)(x) / (float)(y))
#define __fmaf_rn(x, y, z) ::fmaf(x, y, z)

[[maybe_unused]] static float rsqrtf(float x) { return 1.0f / sqrtf(x); }
[[maybe_unused]] static double rsqrt(double x) { return 1.0 / sqrt(x); }
[[maybe_unused]] static float rsqrt(float x) { return 1.0f / sqrtf(x); }

#define CUDA_ON_CPU_ALIKE(A, B) \
    static_assert(std::is_floating_point<A>::value == std::is_floating_point<B>::value, \
                  "min and max take two integers or two floating point numbers: write 0.0f, not 0, beside a float")

template <class A, class B>
static inline typename std::common_type<A, B>::type min(A a, B b) {
    CUDA_ON_CPU_ALIKE(A, B);
    using T = typename std::common_type<A, B>::type;
    if constexpr (std::is_floating_point<T>::value) return a != a ? b : b != b ? a : T(a) < T(b) ? a : b;
    else return T(a) < T(b) ? a : b;
}
template <class A, class B>
static inline typename std::common_type<A, B>::type max(A a, B b) {
    CUDA_ON_CPU_ALIKE(A, B);
    using T = typename std::common_type<A, B>::type;
    if constexpr (std::is_floating_point<T>::value) return a != a ? b : b != b ? a : T(a) > T(b) ? a : b;
    else return T(a) > T(b) ? a : b;
}

[[maybe_unused]] static int __float_as_int(float x) { return cuda_on_cpu::bits<int>(x); }
[[maybe_unused]] static unsigned __float_as_uint(float x) { return cuda_on_cpu::bits<unsigned>(x); }
[[maybe_unused]] static float __int_as_float(int x) { return cuda_on_cpu::bits<float>(x); }
[[maybe_unused]] static float __uint_as_float(unsigned x) { return cuda_on_cpu::bits<float>(x); }
[[maybe_unused]] static long long __double_as_longlong(double x) { return cuda_on_cpu::bits<long long>(x); }
[[maybe_unused]] static double __longlong_as_double(long long x) { return cuda_on_cpu::bits<double>(x); }
#define CUDA_ON_CPU_CONVERSIONS(from, From, to, To) \
    [[maybe_unused]] static To __##from##2##to##_rn(From x) { return static_cast<To>(::rint(x)); } \
    [[maybe_unused]] static To __##from##2##to##_rz(From x) { return static_cast<To>(x); } \
    [[maybe_unused]] static To __##from##2##to##_ru(From x) { return static_cast<To>(::ceil(x)); } \
    [[maybe_unused]] static To __##from##2##to##_rd(From x) { return static_cast<To>(::floor(x)); } \
    [[maybe_unused]] static From __##to##2##from##_rn(To x) { return static_cast<From>(x); }
CUDA_ON_CPU_CONVERSIONS(float, float, int, int)
CUDA_ON_CPU_CONVERSIONS(float, float, uint, unsigned)
CUDA_ON_CPU_CONVERSIONS(float, float, ll, long long)
CUDA_ON_CPU_CONVERSIONS(float, float, ull, unsigned long long)
CUDA_ON_CPU_CONVERSIONS(double, double, int, int)
CUDA_ON_CPU_CONVERSIONS(double, double, uint, unsigned)
CUDA_ON_CPU_CONVERSIONS(double, double, ll, long long)
CUDA_ON_CPU_CONVERSIONS(double, double, ull, unsigned long long)
[[maybe_unused]] static float __double2float_rn(double x) { return static_cast<float>(x); }

[[maybe_unused]] static int __popc(unsigned x) { return __builtin_popcount(x); }
[[maybe_unused]] static int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
[[maybe_unused]] static int __clz(int x) { return x ? __builtin_clz(x) : 32; }
[[maybe_unused]] static int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
[[maybe_unused]] static int __ffs(int x) { return __builtin_ffs(x); }
[[maybe_unused]] static int __ffsll(long long x) { return __builtin_ffsll(x); }
[[maybe_unused]] static unsigned __brev(unsigned x) {
    unsigned reversed = 0;
    for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1) << (31 - i);
    return reversed;
}
[[maybe_unused]] static int __mul24(int x, int y) { return x * y; }
[[maybe_unused]] static int __mulhi(int x, int y) { return static_cast<int>((1ll * x * y) >> 32); }
[[maybe_unused]] static unsigned __umulhi(unsigned x, unsigned y) { return static_cast<unsigned>((1ull * x * y) >> 32); }

[[maybe_unused]] static unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    const uint64_t both = static_cast<uint64_t>(y) << 32 | x;
    unsigned picked = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned nibble = selector >> 4 * i & 15, byte = static_cast<unsigned>(both >> 8 * (nibble & 7)) & 255;
        picked |= (nibble & 8 ? byte >> 7 ? 255u : 0u : byte) << 8 * i;
    }
    return picked;
}
[[maybe_unused]] static unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}
[[maybe_unused]] static unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
[[maybe_unused]] static int __dp4a(int a, int b, int sum) {
    for (int i = 0; i < 32; i += 8) sum += static_cast<signed char>(a >> i) * static_cast<signed char>(b >> i);
    return sum;
}
[[maybe_unused]] static unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
    for (int i = 0; i < 32; i += 8) sum += (a >> i & 255) * (b >> i & 255);
    return sum;
}
#define __dadd_rn(x, y) ((double)(x) + (double)(y))
#define __dsub_rn(x, y) ((double)(x) - (double)(y))
#define __dmul_rn(x, y) ((double)(x) * (double)(y))
#define __ddiv_rn(x, y) ((double)(x) / (double)(y))
#define __fma_rn(x, y, z) ::fma(x, y, z)
#define __dsqrt_rn(x) ::sqrt(x)
#define __builtin_assume(condition) ((void)0)
[[maybe_unused]] static float rcbrtf(float x) { return 1.0f / cbrtf(x); }
[[maybe_unused]] static float norm3df(float x, float y, float z) { return sqrtf(x * x + y * y + z * z); }
[[maybe_unused]] static float rnorm3df(float x, float y, float z) { return 1.0f / norm3df(x, y, z); }
[[maybe_unused]] static float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
[[maybe_unused]] static double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752); }

template <class T>
static __forceinline__ T __ldg(const T* address) { return *address; }
template <class T>
static __forceinline__ T __ldca(const T* address) { return *address; }
template <class T>
static __forceinline__ T __ldcg(const T* address) { return *address; }
template <class T>
static __forceinline__ T __ldcs(const T* address) { return *address; }
template <class T>
static __forceinline__ T __ldlu(const T* address) { return *address; }
template <class T>
static __forceinline__ T __ldcv(const T* address) { return *address; }
template <class T>
static __forceinline__ void __stwb(T* address, T value) { *address = value; }
template <class T>
static __forceinline__ void __stwt(T* address, T value) { *address = value; }
template <class T>
static __forceinline__ void __stcg(T* address, T value) { *address = value; }
template <class T>
static __forceinline__ void __stcs(T* address, T value) { *address = value; }

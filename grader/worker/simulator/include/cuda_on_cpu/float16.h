// CUDA's 16-bit floating-point numbers, with 5 or 8 bits for the exponent: each operation rounds once, to nearest even.
#pragma once
#pragma GCC system_header

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <type_traits>

#include "math.h"
#include "types.h"

namespace cuda_on_cpu {

enum class Round { nearest, zero, up, down };

// Functions are friends so that arguments convert as they do for CUDA's overloads.
template <int exponent_bits, class Allowed>
struct Float16 {
    static constexpr int fraction_bits = 15 - exponent_bits, least = 2 - (1 << (exponent_bits - 1));
    static constexpr uint16_t infinity = ((1 << exponent_bits) - 1) << fraction_bits;

    uint16_t code;

    Float16() = default;
    template <class T>
        requires(Allowed::conversions && std::is_arithmetic<T>::value)
    Float16(T x) : code(rounded(static_cast<double>(x)).code) {}
    template <class T>
        requires(Allowed::conversions && std::is_integral<T>::value)
    explicit operator T() const { return static_cast<T>(value()); }
    operator float() const
        requires(Allowed::conversions)
    { return value(); }

    static Float16 coded(uint16_t code) {
        Float16 made;
        made.code = code;
        return made;
    }

    static Float16 rounded(double x, Round how = Round::nearest) {
        const bool negative = __builtin_signbit(x);
        const uint16_t sign = negative ? 0x8000 : 0;
        if (x != x) return coded(0x7fff);
        const double size = fabs(x);
        if (size == 0) return coded(sign);
        const bool away = (how == Round::up && !negative) || (how == Round::down && negative);
        if (__builtin_isinf(size)) return coded(sign | infinity);
        const int exponent = ilogb(size) < least ? least : ilogb(size);
        const double steps = ldexp(size, fraction_bits - exponent);
        const double whole = how == Round::nearest ? nearbyint(steps) : away ? ceil(steps) : floor(steps);
        const double code = ldexp(exponent - least, fraction_bits) + whole;  // a carry goes on into the exponent
        if (code < infinity) return coded(sign | static_cast<uint16_t>(code));
        return coded(sign | (how == Round::nearest || away ? infinity : infinity - 1));
    }

    float value() const {
        const uint32_t sign = static_cast<uint32_t>(code & 0x8000) << 16, size = code & 0x7fff;
        if constexpr (exponent_bits == 8) return bits<float>(sign | size << 16);
        if (size >= infinity) return bits<float>(sign | 0x7f800000u | (size - infinity) << 13);
        if (size >> fraction_bits == 0) return (sign ? -1.0f : 1.0f) * static_cast<float>(size) * 0x1p-24f;
        return bits<float>(sign | ((size << 13) + ((127 - 15) << 23)));
    }

#define CUDA_ON_CPU_BINARY(name, expression) \
    friend Float16 name(Float16 p, Float16 q) { \
        const double a = p.value(), b = q.value(); \
        return rounded(expression); \
    }
#define CUDA_ON_CPU_ARITHMETIC(name, op) \
    CUDA_ON_CPU_BINARY(__h##name, a op b) \
    CUDA_ON_CPU_BINARY(__h##name##_rn, a op b) \
    CUDA_ON_CPU_BINARY(__h##name##_sat, fmin(fmax(a op b, 0.0), 1.0)) \
    friend Float16 operator op(Float16 p, Float16 q) \
        requires(Allowed::operators) \
    { return __h##name(p, q); } \
    friend Float16& operator op##=(Float16& p, Float16 q) \
        requires(Allowed::operators) \
    { return p = __h##name(p, q); }
    CUDA_ON_CPU_ARITHMETIC(add, +)
    CUDA_ON_CPU_ARITHMETIC(sub, -)
    CUDA_ON_CPU_ARITHMETIC(mul, *)
    CUDA_ON_CPU_BINARY(__hdiv, a / b)
    CUDA_ON_CPU_BINARY(__hmax, a != a ? b : b != b ? a : a > b ? a : b)
    CUDA_ON_CPU_BINARY(__hmin, a != a ? b : b != b ? a : a < b ? a : b)
    CUDA_ON_CPU_BINARY(__hmax_nan, a != a || b != b ? NAN : a > b ? a : b)
    CUDA_ON_CPU_BINARY(__hmin_nan, a != a || b != b ? NAN : a < b ? a : b)
    friend Float16 operator/(Float16 p, Float16 q)
        requires(Allowed::operators)
    { return __hdiv(p, q); }
    friend Float16& operator/=(Float16& p, Float16 q)
        requires(Allowed::operators)
    { return p = __hdiv(p, q); }
    friend Float16 __hfma(Float16 a, Float16 b, Float16 c) { return rounded(fma(a.value(), b.value(), static_cast<double>(c.value()))); }
    friend Float16 __hfma_relu(Float16 a, Float16 b, Float16 c) { return __hmax(__hfma(a, b, c), coded(0)); }
    friend Float16 __hneg(Float16 a) { return coded(a.code ^ 0x8000); }
    friend Float16 __habs(Float16 a) { return coded(a.code & 0x7fff); }
    friend Float16 operator-(Float16 a)
        requires(Allowed::operators)
    { return __hneg(a); }
    friend bool __hisnan(Float16 a) { return (a.code & 0x7fff) > infinity; }
    friend int __hisinf(Float16 a) { return (a.code & 0x7fff) == infinity ? a.code >> 15 ? -1 : 1 : 0; }

#define CUDA_ON_CPU_COMPARISON(name, op) \
    friend bool __h##name(Float16 p, Float16 q) { return p.value() op q.value(); } \
    friend bool operator op(Float16 p, Float16 q) \
        requires(Allowed::operators) \
    { return p.value() op q.value(); }
    CUDA_ON_CPU_COMPARISON(eq, ==)
    CUDA_ON_CPU_COMPARISON(lt, <)
    CUDA_ON_CPU_COMPARISON(le, <=)
    CUDA_ON_CPU_COMPARISON(gt, >)
    CUDA_ON_CPU_COMPARISON(ge, >=)
    friend bool __hne(Float16 p, Float16 q) { return p.value() < q.value() || p.value() > q.value(); }
    friend bool operator!=(Float16 p, Float16 q)
        requires(Allowed::operators)
    { return p.value() != q.value(); }

#define CUDA_ON_CPU_FUNCTION(name, expression) \
    friend Float16 name(Float16 p) { \
        const double a = p.value(); \
        return rounded(expression); \
    }
    CUDA_ON_CPU_FUNCTION(hexp, exp(a))
    CUDA_ON_CPU_FUNCTION(hexp2, exp2(a))
    CUDA_ON_CPU_FUNCTION(hexp10, pow(10.0, a))
    CUDA_ON_CPU_FUNCTION(hlog, log(a))
    CUDA_ON_CPU_FUNCTION(hlog2, log2(a))
    CUDA_ON_CPU_FUNCTION(hlog10, log10(a))
    CUDA_ON_CPU_FUNCTION(hsqrt, sqrt(a))
    CUDA_ON_CPU_FUNCTION(hrsqrt, 1.0 / sqrt(a))
    CUDA_ON_CPU_FUNCTION(hrcp, 1.0 / a)
    CUDA_ON_CPU_FUNCTION(hsin, sin(a))
    CUDA_ON_CPU_FUNCTION(hcos, cos(a))
    CUDA_ON_CPU_FUNCTION(htanh, tanh(a))
    CUDA_ON_CPU_FUNCTION(hfloor, floor(a))
    CUDA_ON_CPU_FUNCTION(hceil, ceil(a))
    CUDA_ON_CPU_FUNCTION(htrunc, trunc(a))
    CUDA_ON_CPU_FUNCTION(hrint, nearbyint(a))

    friend Float16 atomicAdd(Float16* address, Float16 value) {
        const Float16 old = *address;
        *address = __hadd(old, value);
        return old;
    }
};

template <class T, class Allowed>  // of two Float16
struct alignas(4) Float16Pair {
    T x, y;

    Float16Pair() = default;
    Float16Pair(T x, T y) : x(x), y(y) {}

#define CUDA_ON_CPU_PAIRS(name, scalar) \
    friend Float16Pair name(Float16Pair a, Float16Pair b) { return {scalar(a.x, b.x), scalar(a.y, b.y)}; }
#define CUDA_ON_CPU_PAIR_OPERATOR(op, name) \
    friend Float16Pair operator op(Float16Pair a, Float16Pair b) \
        requires(Allowed::pair_operators) \
    { return name(a, b); } \
    friend Float16Pair& operator op##=(Float16Pair& a, Float16Pair b) \
        requires(Allowed::pair_operators) \
    { return a = name(a, b); }
    CUDA_ON_CPU_PAIRS(__hadd2, __hadd)
    CUDA_ON_CPU_PAIRS(__hsub2, __hsub)
    CUDA_ON_CPU_PAIRS(__hmul2, __hmul)
    CUDA_ON_CPU_PAIRS(__hadd2_rn, __hadd)
    CUDA_ON_CPU_PAIRS(__hsub2_rn, __hsub)
    CUDA_ON_CPU_PAIRS(__hmul2_rn, __hmul)
    CUDA_ON_CPU_PAIRS(__h2div, __hdiv)
    CUDA_ON_CPU_PAIRS(__hmax2, __hmax)
    CUDA_ON_CPU_PAIRS(__hmin2, __hmin)
    CUDA_ON_CPU_PAIR_OPERATOR(+, __hadd2)
    CUDA_ON_CPU_PAIR_OPERATOR(-, __hsub2)
    CUDA_ON_CPU_PAIR_OPERATOR(*, __hmul2)
    CUDA_ON_CPU_PAIR_OPERATOR(/, __h2div)
    friend Float16Pair __hfma2(Float16Pair a, Float16Pair b, Float16Pair c) {
        return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
    }
    friend Float16Pair __hneg2(Float16Pair a) { return {__hneg(a.x), __hneg(a.y)}; }
    friend Float16Pair __habs2(Float16Pair a) { return {__habs(a.x), __habs(a.y)}; }
    friend Float16Pair h2exp(Float16Pair a) { return {hexp(a.x), hexp(a.y)}; }
    friend Float16Pair h2log(Float16Pair a) { return {hlog(a.x), hlog(a.y)}; }
    friend Float16Pair h2sqrt(Float16Pair a) { return {hsqrt(a.x), hsqrt(a.y)}; }
    friend Float16Pair h2rsqrt(Float16Pair a) { return {hrsqrt(a.x), hrsqrt(a.y)}; }
    friend Float16Pair h2rcp(Float16Pair a) { return {hrcp(a.x), hrcp(a.y)}; }
    friend float __low2float(Float16Pair a) { return a.x.value(); }
    friend float __high2float(Float16Pair a) { return a.y.value(); }
    friend Float16Pair __lowhigh2highlow(Float16Pair a) { return {a.y, a.x}; }
    friend Float16Pair atomicAdd(Float16Pair* address, Float16Pair value) {
        const Float16Pair old = *address;
        *address = __hadd2(old, value);
        return old;
    }
};

}  // namespace cuda_on_cpu

// The functions whose names have the type in them: `h` is half or bfloat16, `h2` its pair, as CUDA spells them there.
#define CUDA_ON_CPU_FLOAT16(T, T2, h, h2, as, H) \
    [[maybe_unused]] static T __float2##h(float x) { return T::rounded(x); } \
    [[maybe_unused]] static T __double2##h(double x) { return T::rounded(x); } \
    [[maybe_unused]] static float __##as##2float(T x) { return x.value(); } \
    CUDA_ON_CPU_ROUNDINGS(T, h, as, rn, nearest, nearbyint) \
    CUDA_ON_CPU_ROUNDINGS(T, h, as, rz, zero, trunc) \
    CUDA_ON_CPU_ROUNDINGS(T, h, as, ru, up, ceil) \
    CUDA_ON_CPU_ROUNDINGS(T, h, as, rd, down, floor) \
    [[maybe_unused]] static short __##h##_as_short(T x) { return static_cast<short>(x.code); } \
    [[maybe_unused]] static unsigned short __##h##_as_ushort(T x) { return x.code; } \
    [[maybe_unused]] static T __short_as_##h(short x) { return T::coded(static_cast<uint16_t>(x)); } \
    [[maybe_unused]] static T __ushort_as_##h(unsigned short x) { return T::coded(x); } \
    [[maybe_unused]] static T2 make_##h2(T x, T y) { return {x, y}; } \
    [[maybe_unused]] static T2 __##as##2##h2(T x) { return {x, x}; } \
    [[maybe_unused]] static T2 __halves2##h2(T x, T y) { return {x, y}; } \
    [[maybe_unused]] static T2 __float2##h2##_rn(float x) { return {T::rounded(x), T::rounded(x)}; } \
    [[maybe_unused]] static T2 __floats2##h2##_rn(float x, float y) { return {T::rounded(x), T::rounded(y)}; } \
    [[maybe_unused]] static T2 __float22##h2##_rn(float2 a) { return {T::rounded(a.x), T::rounded(a.y)}; } \
    [[maybe_unused]] static float2 __##H##2float2(T2 a) { return {a.x.value(), a.y.value()}; } \
    [[maybe_unused]] static T __low2##h(T2 a) { return a.x; } \
    [[maybe_unused]] static T __high2##h(T2 a) { return a.y; } \
    [[maybe_unused]] static T2 __low2##h2(T2 a) { return {a.x, a.x}; } \
    [[maybe_unused]] static T2 __high2##h2(T2 a) { return {a.y, a.y}; } \
    [[maybe_unused]] static T2 __lows2##h2(T2 a, T2 b) { return {a.x, b.x}; } \
    [[maybe_unused]] static T2 __highs2##h2(T2 a, T2 b) { return {a.y, b.y}; }
#define CUDA_ON_CPU_ROUNDINGS(T, h, as, suffix, how, whole) \
    [[maybe_unused]] static T __float2##h##_##suffix(float x) { return T::rounded(x, cuda_on_cpu::Round::how); } \
    CUDA_ON_CPU_INTEGER(T, h, as, suffix, how, whole, int, int) \
    CUDA_ON_CPU_INTEGER(T, h, as, suffix, how, whole, uint, unsigned) \
    CUDA_ON_CPU_INTEGER(T, h, as, suffix, how, whole, short, short) \
    CUDA_ON_CPU_INTEGER(T, h, as, suffix, how, whole, ushort, unsigned short) \
    CUDA_ON_CPU_INTEGER(T, h, as, suffix, how, whole, ll, long long) \
    CUDA_ON_CPU_INTEGER(T, h, as, suffix, how, whole, ull, unsigned long long)
#define CUDA_ON_CPU_INTEGER(T, h, as, suffix, how, whole, name, type) \
    [[maybe_unused]] static T __##name##2##h##_##suffix(type x) { \
        return T::rounded(static_cast<double>(x), cuda_on_cpu::Round::how); \
    } \
    [[maybe_unused]] static type __##as##2##name##_##suffix(T x) { return static_cast<type>(::whole(x.value())); }

// The entry to a kernel of CuPy's RawModule: its arguments are addresses, as for `cuLaunchKernel`.
#pragma once
#pragma GCC system_header

#include <math.h>

#include <type_traits>
#include <utility>

#include "launch.h"

namespace cuda_on_cpu {

template <class... Parameters>
static void enter(void (*kernel)(Parameters...), const unsigned* sizes, size_t shared, int line, void** arguments) {
    const Config config(dim3(sizes[0], sizes[1], sizes[2]), dim3(sizes[3], sizes[4], sizes[5]), shared, nullptr, line);
    enter_with(kernel, config, arguments, std::index_sequence_for<Parameters...>());
}

template <class... Parameters>
static int parameters_of(void (*)(Parameters...)) {
    return sizeof...(Parameters);
}

// One letter for each parameter: p for a pointer, f and d for a float and a double, n for an integer that is no address,
// x for anything else.
template <class... Parameters>
static const char* kinds_of(void (*)(Parameters...)) {
    static const char kinds[] = {(std::is_pointer_v<Parameters>                                     ? 'p'
                                  : std::is_floating_point_v<Parameters>                             ? (sizeof(Parameters) == 4 ? 'f' : 'd')
                                  : std::is_integral_v<Parameters> && sizeof(Parameters) < 8         ? 'n'
                                                                                                     : 'x')...,
                                 0};
    return kinds;
}

// The GPU's fast sine: it counts turns in float, so the error grows with the angle, and it rounds a little more.
constexpr float turns_per_radian = 0.15915494f, radians_per_turn = 6.28318531f, steps = 4194304.0f;
static inline float turn(float x) {
    const float turns = x * turns_per_radian;
    return (turns - rintf(turns)) * radians_per_turn;
}
static inline float fast_sine(float x) { return rintf(::sinf(turn(x)) * steps) / steps; }
static inline float fast_cosine(float x) { return rintf(::cosf(turn(x)) * steps) / steps; }
static inline void fast_sine_cosine(float x, float* sine, float* cosine) { *sine = fast_sine(x), *cosine = fast_cosine(x); }
static inline void sine_cosine(float x, float* sine, float* cosine) { fast_sine_cosine(x, sine, cosine); }
static inline void sine_cosine(double x, double* sine, double* cosine) { ::sincos(x, sine, cosine); }
static inline float sine(float x) { return fast_sine(x); }
static inline double sine(double x) { return ::sin(x); }
static inline float cosine(float x) { return fast_cosine(x); }
static inline double cosine(double x) { return ::cos(x); }

}  // namespace cuda_on_cpu

// A refused launch does not break the device: once reported, it is forgotten. Returns 0 if a kernel failed, which lasts.
extern "C" __attribute__((visibility("default"), used)) int cuda_on_cpu_clear() {
    if (!cuda_on_cpu::errors.broken) cuda_on_cpu::errors.last = cudaSuccess;
    return !cuda_on_cpu::errors.broken;
}

#undef __sinf
#undef __cosf
#undef __sincosf
#define __sinf(x) ::cuda_on_cpu::fast_sine(x)
#define __cosf(x) ::cuda_on_cpu::fast_cosine(x)
#define __sincosf(x, sine, cosine) ::cuda_on_cpu::fast_sine_cosine(x, sine, cosine)

[[maybe_unused]] static void sincos(float x, float* sine, float* cosine) { ::sincosf(x, sine, cosine); }
[[maybe_unused]] static void sincospif(float x, float* sine, float* cosine) {
    ::sincosf(static_cast<float>(fmod(x, 2.0) * 3.14159265358979323846), sine, cosine);
}
[[maybe_unused]] static void sincospi(double x, double* sine, double* cosine) {
    ::sincos(fmod(x, 2.0) * 3.14159265358979323846, sine, cosine);
}
[[maybe_unused]] static float sinpif(float x) { return static_cast<float>(::sin(fmod(x, 2.0) * 3.14159265358979323846)); }
[[maybe_unused]] static float cospif(float x) { return static_cast<float>(::cos(fmod(x, 2.0) * 3.14159265358979323846)); }

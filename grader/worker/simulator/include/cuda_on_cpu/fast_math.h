// What `--use_fast_math` does to the names of a source that comes after it: sine and cosine of floats are the GPU's own.
#pragma once
#pragma GCC system_header

#include "enter.h"

#define sinf(x) ::cuda_on_cpu::fast_sine(x)
#define cosf(x) ::cuda_on_cpu::fast_cosine(x)
#define sincosf(x, sine, cosine) ::cuda_on_cpu::fast_sine_cosine(x, sine, cosine)
#define sin(x) ::cuda_on_cpu::sine(x)
#define cos(x) ::cuda_on_cpu::cosine(x)
#define sincos(x, sine, cosine) ::cuda_on_cpu::sine_cosine(x, sine, cosine)

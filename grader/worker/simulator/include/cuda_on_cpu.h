// CUDA C++ on the CPU: what a translated source includes first. See grader/worker/simulator/cuda_source.py.
#pragma once
#pragma GCC system_header

#include "cuda_on_cpu/types.h"
#include "cuda_on_cpu/errors.h"
#include "cuda_on_cpu/scheduler.h"
#include "cuda_on_cpu/accesses.h"
#ifndef CUDA_ON_CPU_LINKED
#include "cuda_on_cpu/instrumented.h"
#endif
#include "cuda_on_cpu/launch.h"
#include "cuda_on_cpu/warp.h"
#include "cuda_on_cpu/atomics.h"
#include "cuda_on_cpu/math.h"
#include "cuda_on_cpu/runtime.h"
#include "cuda_on_cpu/streams.h"

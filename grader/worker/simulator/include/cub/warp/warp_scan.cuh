// In CUDA's place: all of it is in one header here.
#pragma once
#pragma GCC system_header
#include "cuda_on_cpu/cub.h"

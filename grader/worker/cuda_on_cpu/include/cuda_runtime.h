// In CUDA's place: all of it is in one header here.
#pragma once
#include "cuda_on_cpu.h"

// In PyTorch's place.
#pragma once
#pragma GCC system_header
#include <ATen/cuda/CUDAContextLight.h>
#include <c10/util/Logging.h>

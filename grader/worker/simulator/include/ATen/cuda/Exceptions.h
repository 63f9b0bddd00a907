// In PyTorch's place.
#pragma once
#pragma GCC system_header
#include <c10/cuda/CUDAException.h>

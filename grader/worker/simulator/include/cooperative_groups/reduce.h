// In CUDA's place: reductions over lanes. Every lane gets the result.
#pragma once
#pragma GCC system_header
#include "../cooperative_groups.h"

namespace cooperative_groups {

#define CUDA_ON_CPU_OPERATION(name, expression) \
    template <class T = void> \
    struct name { \
        template <class U> \
        U operator()(const U& a, const U& b) const { return expression; } \
    };
CUDA_ON_CPU_OPERATION(plus, a + b)
CUDA_ON_CPU_OPERATION(less, b < a ? b : a)
CUDA_ON_CPU_OPERATION(greater, a < b ? b : a)
CUDA_ON_CPU_OPERATION(bit_and, a & b)
CUDA_ON_CPU_OPERATION(bit_or, a | b)
CUDA_ON_CPU_OPERATION(bit_xor, a ^ b)

template <class Group, class T, class Operation>
static T reduce(const Group& group, const T& value, Operation operation, int line = __builtin_LINE()) {
    T all[32];
    unsigned left = cuda_on_cpu::gather(group.lane_mask(), value, all, "reduce()", line);
    T result = all[__builtin_ctz(left)];
    while (left &= left - 1) result = operation(result, all[__builtin_ctz(left)]);
    return result;
}

}  // namespace cooperative_groups

// In CUDA's place: scans over lanes, in the order of their ranks.
#pragma once
#pragma GCC system_header
#include "reduce.h"

namespace cooperative_groups {

template <class Group, class T, class Operation = plus<T>>
static T inclusive_scan(const Group& group, const T& value, Operation operation = {}, int line = __builtin_LINE()) {
    T all[32];
    unsigned left = cuda_on_cpu::gather(group.lane_mask(), value, all, "inclusive_scan()", line);
    T result = all[__builtin_ctz(left)];
    while ((left &= left - 1) && __builtin_ctz(left) <= cuda_on_cpu::lane()) result = operation(result, all[__builtin_ctz(left)]);
    return result;
}

// The first lane gets a T of zeros, as CUDA's does for sums.
template <class Group, class T, class Operation = plus<T>>
static T exclusive_scan(const Group& group, const T& value, Operation operation = {}, int line = __builtin_LINE()) {
    T all[32];
    unsigned left = cuda_on_cpu::gather(group.lane_mask(), value, all, "exclusive_scan()", line);
    if (__builtin_ctz(left) == cuda_on_cpu::lane()) return T{};
    T result = all[__builtin_ctz(left)];
    while ((left &= left - 1) && __builtin_ctz(left) < cuda_on_cpu::lane()) result = operation(result, all[__builtin_ctz(left)]);
    return result;
}

}  // namespace cooperative_groups

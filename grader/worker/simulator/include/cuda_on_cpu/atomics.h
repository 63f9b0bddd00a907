// Atomics: one thread runs at a time, so plain reads and writes are atomic.
#pragma once
#pragma GCC system_header

#include <string.h>
#include <type_traits>

#include "accesses.h"

namespace cuda_on_cpu {
template <class T>
struct Same {
    using type = T;
};
template <class T>
using Value = typename Same<T>::type;  // keeps the value's type out of deduction: atomicAdd(&a_float, 1)

// A GPU's sums that are NaN are always the same NaN; a CPU's are one of the operands. What was added to an output that
// nobody had set to 0 must not look as if it had never been written.
template <class T>
CUDA_ON_CPU_UNSEEN static T sum(T old, T value, void* code) {
    if constexpr (std::is_same<T, float>::value) return old != old ? __builtin_nanf("0x7fffff") : old + value;
    else if constexpr (std::is_same<T, double>::value) return old != old ? __builtin_nan("") : old + value;
    else {
        T total;
        if (__builtin_add_overflow(old, value, &total) && std::is_signed<T>::value && block.running >= 0 && !*errors.overflow)
            overflowed(line_of(code), old, '+', value, sizeof(T) == 4 ? "int" : "long long");
        return total;
    }
}

template <class T, class Change>
CUDA_ON_CPU_UNSEEN static T exchange(T* address, void* code, Change change) {
    access_atomic(address, sizeof(T), code);
    T old = *address;
    *address = change(old);
    return old;
}
}  // namespace cuda_on_cpu

// Not inlined: the return address tells the line of the call.
#define CUDA_ON_CPU_ATOMIC_AS(name, allowed, expression) \
    template <class T> \
    __attribute__((noinline)) CUDA_ON_CPU_UNSEEN static T name(T* address, cuda_on_cpu::Value<T> value) { \
        static_assert(allowed, #name " has no version for this type"); \
        void* code = __builtin_return_address(0); \
        return cuda_on_cpu::exchange(address, code, [&](T old) CUDA_ON_CPU_UNSEEN -> T { return expression; }); \
    }
#define CUDA_ON_CPU_ATOMIC(name, allowed, expression) \
    CUDA_ON_CPU_ATOMIC_AS(name, allowed, expression) \
    CUDA_ON_CPU_ATOMIC_AS(name##_block, allowed, expression) \
    CUDA_ON_CPU_ATOMIC_AS(name##_system, allowed, expression)
CUDA_ON_CPU_ATOMIC(atomicAdd, (std::is_arithmetic<T>::value && sizeof(T) >= 4), cuda_on_cpu::sum<T>(old, value, code))
CUDA_ON_CPU_ATOMIC(atomicSub, (std::is_integral<T>::value && sizeof(T) == 4), old - value)
CUDA_ON_CPU_ATOMIC(atomicExch, (sizeof(T) >= 4), value)
CUDA_ON_CPU_ATOMIC(atomicMin, (std::is_integral<T>::value && sizeof(T) >= 4), value < old ? value : old)
CUDA_ON_CPU_ATOMIC(atomicMax, (std::is_integral<T>::value && sizeof(T) >= 4), value > old ? value : old)
CUDA_ON_CPU_ATOMIC(atomicAnd, (std::is_integral<T>::value && sizeof(T) >= 4), old & value)
CUDA_ON_CPU_ATOMIC(atomicOr, (std::is_integral<T>::value && sizeof(T) >= 4), old | value)
CUDA_ON_CPU_ATOMIC(atomicXor, (std::is_integral<T>::value && sizeof(T) >= 4), old ^ value)
CUDA_ON_CPU_ATOMIC(atomicInc, (std::is_same<T, unsigned>::value), old >= value ? 0 : old + 1)
CUDA_ON_CPU_ATOMIC(atomicDec, (std::is_same<T, unsigned>::value), old == 0 || old > value ? value : old - 1)

template <class T>
__attribute__((noinline)) CUDA_ON_CPU_UNSEEN static T atomicCAS(T* address, cuda_on_cpu::Value<T> compare, cuda_on_cpu::Value<T> value) {
    static_assert(std::is_integral<T>::value, "atomicCAS has no version for this type");
    return cuda_on_cpu::exchange(address, __builtin_return_address(0), [&](T old) -> T { return old == compare ? value : old; });
}

#define __threadfence() ::cuda_on_cpu::fence_memory()
#define __threadfence_block() ::cuda_on_cpu::fence_memory()
#define __threadfence_system() ::cuda_on_cpu::fence_memory()
#define __nanosleep(nanoseconds) ((void)(nanoseconds))

// Operations of a whole warp: shuffles, votes, __syncwarp.
#pragma once
#pragma GCC system_header

#include "scheduler.h"

namespace cuda_on_cpu {

CUDA_ON_CPU_UNSEEN static unsigned lanes_of(int warp) {
    const int left = block.threads - warp * 32;
    return left >= 32 ? 0xffffffffu : (1u << left) - 1;
}

CUDA_ON_CPU_UNSEEN static int lane() { return fibers[block.running].thread & 31; }

// Waits until every lane in `mask` has brought its value to the same call.
CUDA_ON_CPU_UNSEEN static Exchange& meet(unsigned mask, uint64_t value, const char* call, int line, bool any_line = false) {
    if (block.running < 0) {
        static Exchange nobody;
        fail(cudaErrorLaunchFailure, true, "%s on line %d was called outside of a kernel.", call, line);
        return nobody;
    }
    const int warp = fibers[block.running].thread / 32;
    const unsigned bit = 1u << lane();
    if (!(mask & bit)) {
        fail(cudaErrorLaunchFailure, true, "Lane %d calls %s on line %d with the mask 0x%08x, which does not name it.", lane(), call,
             line, mask);
        stop();
    }
    Exchange *exchange = nullptr, *unused = nullptr;
    for (Exchange& other : block.exchanges[warp]) {
        if (other.mask == mask && !other.complete) exchange = &other;
        if (!other.mask) unused = &other;
    }
    if (!exchange) {
        exchange = unused;
        *exchange = Exchange{mask, mask & lanes_of(warp), 0, 0, line, call, false, {}};
        block.exchanged = true;
    } else if (exchange->line != line && !any_line) {
        fail(cudaErrorLaunchFailure, true,
             "Lanes of one warp meet at different calls: some at %s on line %d, others at %s on line %d. Every lane that the "
             "mask names must reach the same call.",
             exchange->call, exchange->line, call, line);
        stop();
    }
    exchange->values[lane()] = value;
    exchange->arrived |= bit;
    if (exchange->arrived != exchange->needed) {
        park(Wait::warp, call, line);
        return *exchange;
    }
    exchange->complete = true;
    meet_in_warp(warp, exchange->needed, exchange->needed == lanes_of(warp));
    exchange->unread = exchange->needed;
    for (int other = 0; other < 32; ++other)
        if (exchange->needed & ~bit & (1u << other)) fibers[block.fiber_of[warp * 32 + other]].wait = Wait::nothing;
    return *exchange;
}

CUDA_ON_CPU_UNSEEN static void done_with(Exchange& exchange) {
    if (block.running < 0) return;
    exchange.unread &= ~(1u << lane());
    if (!exchange.unread) exchange.mask = 0;
}

// Brings the values of all lanes in `mask` to each of them, by lane; `all` has 32 elements.
template <class T>
CUDA_ON_CPU_UNSEEN static unsigned gather(unsigned mask, const T& value, T* all, const char* call, int line) {
    unsigned lanes = 0;
    for (size_t at = 0; at < sizeof(T); at += 8) {
        const size_t bytes = sizeof(T) - at < 8 ? sizeof(T) - at : 8;
        uint64_t word = 0;
        memcpy(&word, reinterpret_cast<const char*>(&value) + at, bytes);
        Exchange& exchange = meet(mask, word, call, line);
        lanes = exchange.needed;
        for (int i = 0; i < 32; ++i)
            if (lanes >> i & 1) memcpy(reinterpret_cast<char*>(all + i) + at, &exchange.values[i], bytes);
        done_with(exchange);
    }
    return lanes;
}

template <class T>
CUDA_ON_CPU_UNSEEN static T shuffle(unsigned mask, T value, int source, const char* call, int line) {
    static_assert(sizeof(T) <= 8, "a shuffle moves values of at most 8 bytes");
    uint64_t bits = 0, got;
    forget(&got, sizeof got);  // a lane that takes no part has no value
    memcpy(&bits, &value, sizeof value);
    Exchange& exchange = meet(mask, bits, call, line);
    if (exchange.needed >> source & 1) got = exchange.values[source];
    done_with(exchange);
    memcpy(&value, &got, sizeof value);
    return value;
}

CUDA_ON_CPU_UNSEEN static unsigned ballot(unsigned mask, int predicate, const char* call, int line) {
    Exchange& exchange = meet(mask, predicate != 0, call, line);
    unsigned votes = 0;
    for (int i = 0; i < 32; ++i)
        if (exchange.needed >> i & 1 && exchange.values[i]) votes |= 1u << i;
    done_with(exchange);
    return votes;
}

template <class T, class Combine>
CUDA_ON_CPU_UNSEEN static T reduce(unsigned mask, T value, Combine combine, const char* call, int line) {
    Exchange& exchange = meet(mask, static_cast<uint64_t>(value), call, line);
    bool first = true;
    T result{};
    for (int i = 0; i < 32; ++i) {
        if (!(exchange.needed >> i & 1)) continue;
        const T other = static_cast<T>(exchange.values[i]);
        result = first ? other : combine(result, other);
        first = false;
    }
    done_with(exchange);
    return result;
}

template <class T>
CUDA_ON_CPU_UNSEEN static unsigned match(unsigned mask, T value, const char* call, int line) {
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    Exchange& exchange = meet(mask, bits, call, line);
    unsigned same = 0;
    for (int i = 0; i < 32; ++i)
        if (exchange.needed >> i & 1 && exchange.values[i] == bits) same |= 1u << i;
    done_with(exchange);
    return same;
}

}  // namespace cuda_on_cpu

template <class T>
CUDA_ON_CPU_UNSEEN static T __shfl_sync(unsigned mask, T value, int source, int width = 32, int line = __builtin_LINE()) {
    const int lane = cuda_on_cpu::lane();
    return cuda_on_cpu::shuffle(mask, value, (lane & -width) + (source & (width - 1)), "__shfl_sync()", line);
}
template <class T>
CUDA_ON_CPU_UNSEEN static T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, int line = __builtin_LINE()) {
    const int lane = cuda_on_cpu::lane(), source = lane - static_cast<int>(delta);
    return cuda_on_cpu::shuffle(mask, value, source < (lane & -width) ? lane : source, "__shfl_up_sync()", line);
}
template <class T>
CUDA_ON_CPU_UNSEEN static T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, int line = __builtin_LINE()) {
    const int lane = cuda_on_cpu::lane(), source = lane + static_cast<int>(delta);
    return cuda_on_cpu::shuffle(mask, value, source >= (lane & -width) + width ? lane : source, "__shfl_down_sync()", line);
}
template <class T>
CUDA_ON_CPU_UNSEEN static T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, int line = __builtin_LINE()) {
    const int lane = cuda_on_cpu::lane(), source = lane ^ lane_mask;
    return cuda_on_cpu::shuffle(mask, value, source >= (lane & -width) + width ? lane : source, "__shfl_xor_sync()", line);
}

[[maybe_unused]] CUDA_ON_CPU_UNSEEN static void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
    cuda_on_cpu::done_with(cuda_on_cpu::meet(mask, 0, "__syncwarp()", line, true));
}
[[maybe_unused]] CUDA_ON_CPU_UNSEEN static unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    return cuda_on_cpu::ballot(mask, predicate, "__ballot_sync()", line);
}
[[maybe_unused]] CUDA_ON_CPU_UNSEEN static int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    return cuda_on_cpu::ballot(mask, predicate, "__any_sync()", line) != 0;
}
[[maybe_unused]] CUDA_ON_CPU_UNSEEN static int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    return cuda_on_cpu::ballot(mask, !predicate, "__all_sync()", line) == 0;
}
// The hardware decides which lanes are active together; here, all those are that can reach the same line now.
[[maybe_unused]] CUDA_ON_CPU_UNSEEN static unsigned __activemask(int line = __builtin_LINE()) {
    cuda_on_cpu::park(cuda_on_cpu::Wait::active, "__activemask()", line);
    return cuda_on_cpu::fibers[cuda_on_cpu::block.running].active;
}
template <class T>
CUDA_ON_CPU_UNSEEN static unsigned __match_any_sync(unsigned mask, T value, int line = __builtin_LINE()) {
    return cuda_on_cpu::match(mask, value, "__match_any_sync()", line);
}

template <class T>
CUDA_ON_CPU_UNSEEN static unsigned __match_all_sync(unsigned mask, T value, int* same, int line = __builtin_LINE()) {
    const unsigned lanes = mask & cuda_on_cpu::lanes_of(cuda_on_cpu::fibers[cuda_on_cpu::block.running].thread / 32);
    *same = cuda_on_cpu::match(mask, value, "__match_all_sync()", line) == lanes;
    return *same ? mask : 0;
}

#define CUDA_ON_CPU_REDUCE(name, T, expression) \
    [[maybe_unused]] CUDA_ON_CPU_UNSEEN static T __reduce_##name##_sync(unsigned mask, T value, int line = __builtin_LINE()) { \
        return cuda_on_cpu::reduce(mask, value, [](T a, T b) -> T { return expression; }, "__reduce_" #name "_sync()", line); \
    }
CUDA_ON_CPU_REDUCE(add, unsigned, a + b)
CUDA_ON_CPU_REDUCE(add, int, a + b)
CUDA_ON_CPU_REDUCE(min, unsigned, a < b ? a : b)
CUDA_ON_CPU_REDUCE(min, int, a < b ? a : b)
CUDA_ON_CPU_REDUCE(max, unsigned, a > b ? a : b)
CUDA_ON_CPU_REDUCE(max, int, a > b ? a : b)
CUDA_ON_CPU_REDUCE(and, unsigned, a & b)
CUDA_ON_CPU_REDUCE(or, unsigned, a | b)
CUDA_ON_CPU_REDUCE(xor, unsigned, a ^ b)

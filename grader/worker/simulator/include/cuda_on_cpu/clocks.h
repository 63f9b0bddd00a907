// Which accesses are ordered: barriers, __syncwarp and shuffles, and fences with atomics.
//
// Each thread has a clock, which every synchronisation advances. Threads that meet leave with the same clock, so that an
// access with an earlier one is over. What a thread wrote before a fence and an atomic (or a volatile store) is ordered
// before the rest of a block that later uses the same address in the same way.
#pragma once
#pragma GCC system_header

#include <stdlib.h>

#include "shadow.h"

namespace cuda_on_cpu {

constexpr int most_threads = 1024;
constexpr unsigned last_clock = 0x3ffff, last_block = 0x3fffff;

struct Release {  // by `thread` of `block`: its accesses up to `clock`, and those of the whole block before `floor`
    unsigned block, thread, clock, floor;
    int acquired_begin, acquired_end;  // what the block had acquired by then
};
struct Channel {  // an address that is used to tell other blocks something
    uintptr_t address;
    Release* releases;
    int count, capacity;
    unsigned long search;  // the last search that came here, and how many releases it has seen
    int seen;
};
struct Acquired {
    int channel, count;  // the first `count` releases
};

CUDA_ON_CPU_STATE struct Clocks {
    unsigned long launch = 0;
    unsigned block = 0;        // within the launch, from 1
    bool off = false;          // too many blocks or synchronisations to tell apart
    bool fenced = false;  // in this launch
    bool partial = false;      // `known` is in use
    unsigned told_block = 0;   // the last block that has used an atomic
    int threads = 0, thread = 0;
    Stamp now = 0;             // of the running thread, without how and site
    int fences = 0;            // since the last barrier of the block
    unsigned fenced_floor = 0;  // the block's accesses with an earlier clock came before fences and a barrier
    unsigned floor = 0;        // all accesses of the block with an earlier clock are over
    unsigned warp_floor[most_threads / 32];
    unsigned clock[most_threads], fence_clock[most_threads], fence_floor[most_threads];
    unsigned known[most_threads][32];  // of each lane of its warp: the last clock whose accesses are over
    Channel* channels = nullptr;
    int channel_count = 0, channel_capacity = 0;
    Acquired* acquired = nullptr;
    unsigned long search = 0;
    int acquired_begin = 0, acquired_count = 0, acquired_capacity = 0;
} clocks;

CUDA_ON_CPU_STATE bool unsettled = false;  // an access of the running thread is not judged yet
CUDA_ON_CPU_UNSEEN static void settle();   // judges it: see accesses.h

CUDA_ON_CPU_UNSEEN static inline void run_as(int thread) {
    if (unsettled) settle();
    clocks.thread = thread;
    clocks.now = Stamp(clocks.block) << block_at | Stamp(clocks.clock[thread]) << clock_at | Stamp(thread) << thread_at;
}

CUDA_ON_CPU_UNSEEN static void begin_launch_clocks() {
    ++clocks.launch;
    clocks.block = 0;
    clocks.off = clocks.fenced = false;
    clocks.told_block = 0;
    for (int i = 0; i < clocks.channel_count; ++i) free(clocks.channels[i].releases);
    clocks.channel_count = clocks.acquired_count = 0;
    if (page_count > max_pages / 2) forget_pages();
}

CUDA_ON_CPU_UNSEEN static void begin_block_clocks(int threads) {
    clocks.threads = threads;
    if (++clocks.block > last_block) clocks.off = true;
    clocks.floor = clocks.fenced_floor = 0;
    clocks.fences = 0;
    memset(clocks.warp_floor, 0, sizeof clocks.warp_floor);
    for (int i = 0; i < threads; ++i) clocks.clock[i] = 1, clocks.fence_clock[i] = clocks.fence_floor[i] = 0;
    if (clocks.partial) memset(clocks.known, 0, sizeof clocks.known);
    clocks.partial = false;
    clocks.acquired_begin = clocks.acquired_count;
}

CUDA_ON_CPU_UNSEEN static unsigned after(unsigned clock) {
    if (clock >= last_clock) clocks.off = true;
    return clock + 1;
}

// All threads of the block meet.
CUDA_ON_CPU_UNSEEN static void meet_in_block() {
    unsigned latest = 0;
    for (int i = 0; i < clocks.threads; ++i)
        if (clocks.clock[i] > latest) latest = clocks.clock[i];
    clocks.floor = after(latest);
    for (int i = 0; i < clocks.threads; ++i) clocks.clock[i] = clocks.floor;
    if (clocks.fences > 1) clocks.fenced_floor = clocks.floor;  // each thread has its own
    clocks.fences = 0;
    run_as(clocks.thread);
}

// The lanes of a warp in `mask` meet; `whole`: they are all that it has.
CUDA_ON_CPU_UNSEEN static void meet_in_warp(int warp, unsigned mask, bool whole) {
    unsigned* clock = clocks.clock + 32 * warp;
    unsigned latest = 0;
    for (int i = 0; i < 32; ++i)
        if (mask >> i & 1 && clock[i] > latest) latest = clock[i];
    const unsigned next = after(latest);
    if (whole) {
        clocks.warp_floor[warp] = next;
    } else {
        unsigned joined[32] = {};
        for (int i = 0; i < 32; ++i) {
            if (!(mask >> i & 1)) continue;
            const unsigned* known = clocks.known[32 * warp + i];
            for (int j = 0; j < 32; ++j)
                if (known[j] > joined[j]) joined[j] = known[j];
            joined[i] = clock[i] > joined[i] ? clock[i] : joined[i];
        }
        for (int i = 0; i < 32; ++i)
            if (mask >> i & 1) memcpy(clocks.known[32 * warp + i], joined, sizeof joined);
        clocks.partial = true;
    }
    for (int i = 0; i < 32; ++i)
        if (mask >> i & 1) clock[i] = next;
    run_as(clocks.thread);
}

CUDA_ON_CPU_UNSEEN static void fence_memory() {
    unsigned& clock = clocks.clock[clocks.thread];
    clocks.fenced = true;
    ++clocks.fences;
    clocks.fence_clock[clocks.thread] = clock;
    clocks.fence_floor[clocks.thread] = clocks.floor;
    clock = after(clock);
    run_as(clocks.thread);
}

template <class T>
CUDA_ON_CPU_UNSEEN static bool append(T*& items, int& count, int& capacity, const T& item) {
    if (count == capacity) {
        const int wanted = capacity ? 2 * capacity : 16;
        T* moved = static_cast<T*>(realloc(items, wanted * sizeof(T)));
        if (!moved) return false;
        items = moved, capacity = wanted;
    }
    items[count++] = item;
    return true;
}

CUDA_ON_CPU_UNSEEN static int channel_at(uintptr_t address, bool make) {
    for (int i = clocks.channel_count - 1; i >= 0; --i)
        if (clocks.channels[i].address == address) return i;
    if (!make || !append(clocks.channels, clocks.channel_count, clocks.channel_capacity, {address, nullptr, 0, 0, 0, 0})) return -1;
    return clocks.channel_count - 1;
}

// The running thread learns what others released at this address.
CUDA_ON_CPU_UNSEEN static void acquire(uintptr_t address) {
    if (!clocks.fenced) return;
    const int channel = channel_at(address, false);
    if (channel < 0) return;
    Acquired* last = clocks.acquired_count > clocks.acquired_begin ? clocks.acquired + clocks.acquired_count - 1 : nullptr;
    if (last && last->channel == channel) last->count = clocks.channels[channel].count;
    else
        append(clocks.acquired, clocks.acquired_count, clocks.acquired_capacity, {channel, clocks.channels[channel].count});
}

// It tells others what it did before its last fence.
CUDA_ON_CPU_UNSEEN static void release(uintptr_t address) {
    const int thread = clocks.thread;
    const unsigned own = clocks.fence_floor[thread], floor = own > clocks.fenced_floor ? own : clocks.fenced_floor;
    const int channel = clocks.fence_clock[thread] || floor ? channel_at(address, true) : -1;
    if (channel < 0) return;
    Channel& to = clocks.channels[channel];
    append(to.releases, to.count, to.capacity,
           {clocks.block, unsigned(thread), clocks.fence_clock[thread], floor, clocks.acquired_begin,
            clocks.acquired_count});
}

// Whether what was acquired in this range orders the access, itself or by what its releasers had acquired.
CUDA_ON_CPU_UNSEEN static bool is_acquired(Stamp stamp, int begin, int end, int depth) {
    if (depth > 500) return true;  // too long to tell
    const unsigned clock = clock_of(stamp), thread = thread_of(stamp);
    for (int i = end - 1; i >= begin; --i) {
        Channel& channel = clocks.channels[clocks.acquired[i].channel];
        const int first = channel.search == clocks.search ? channel.seen : 0, last = clocks.acquired[i].count;
        if (last <= first) continue;
        channel.search = clocks.search, channel.seen = last;
        for (int j = first; j < last; ++j) {
            const Release& release = channel.releases[j];
            if (release.block == block_of(stamp) &&
                (clock < release.floor || (release.thread == thread && clock == release.clock) ||
                 (release.thread / 32 == thread / 32 && clock < release.clock)))  // its lanes may have met
                return true;
        }
        for (int j = first; j < last; ++j) {
            const Release& release = channel.releases[j];
            if (is_acquired(stamp, release.acquired_begin, release.acquired_end, depth + 1)) return true;
        }
    }
    return false;
}

// Whether the running thread has met the one that made this access since then.
CUDA_ON_CPU_UNSEEN static inline bool have_met(Stamp stamp) {
    if (block_of(stamp) != clocks.block) return false;
    const int other = thread_of(stamp), warp = clocks.thread / 32;
    const unsigned clock = clock_of(stamp);
    if (other == clocks.thread || clock < clocks.floor) return true;
    return other / 32 == warp && (clock < clocks.warp_floor[warp] || clock <= clocks.known[clocks.thread][other % 32]);
}

// Whether an access is over, and visible, before whatever the running thread does now.
CUDA_ON_CPU_UNSEEN static bool ordered(Stamp stamp) {
    if (have_met(stamp)) return true;
    ++clocks.search;
    return is_acquired(stamp, clocks.acquired_begin, clocks.acquired_count, 0);
}

}  // namespace cuda_on_cpu

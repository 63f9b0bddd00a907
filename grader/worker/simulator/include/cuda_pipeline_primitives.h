// In CUDA's place: a copy is made when its thread waits for it, so that without the wait there is no value.
#pragma once
#pragma GCC system_header
#include <stdlib.h>

#include "cuda_on_cpu.h"

namespace cuda_on_cpu {

struct AsyncCopy {
    void* to;
    const void* from;
    size_t bytes, zeros;  // the last bytes of `to` become 0
    unsigned long group;
    void* code;  // that began it
};
struct AsyncCopies {  // of one thread: those that it has not waited for, in the order of their groups
    unsigned long block, group;
    size_t count, room;
    AsyncCopy* waiting;
};
CUDA_ON_CPU_STATE AsyncCopies async_copies[max_threads];

CUDA_ON_CPU_UNSEEN static AsyncCopies& own_copies() {
    AsyncCopies& own = async_copies[fibers[block.running].thread];
    if (own.block != block.serial) own.block = block.serial, own.group = own.count = 0;
    return own;
}

CUDA_ON_CPU_UNSEEN static void make(const AsyncCopy& copy) {  // the accesses are the thread's
    const size_t bytes = copy.bytes - copy.zeros;
    if (bytes) access(reinterpret_cast<uintptr_t>(copy.from), bytes, How::plain, false, copy.code);
    access(reinterpret_cast<uintptr_t>(copy.to), copy.bytes, How::plain, true, copy.code);
    memcpy(copy.to, copy.from, bytes);
    memset(static_cast<char*>(copy.to) + bytes, 0, copy.zeros);
}

// A GPU may copy at any time from now on: nobody may still use this memory, and it has no value before the wait.
CUDA_ON_CPU_UNSEEN static void lose(void* to, size_t bytes, void* code) {
    const bool counted = traffic.on;
    traffic.on = false;
    const auto begin = reinterpret_cast<uintptr_t>(to);
    access(begin, bytes, How::plain, true, code);
    traffic.on = counted;
    forget(to, bytes);
    for (uintptr_t at = begin; at < begin + bytes; at += 4)
        if (Page* page = page_at(at, clocks.launch)) page->words[at % page_bytes / 4].write = 0;
}

}  // namespace cuda_on_cpu

[[maybe_unused]] __attribute__((noinline)) CUDA_ON_CPU_UNSEEN static void __pipeline_memcpy_async(
    void* to, const void* from, size_t bytes, size_t zeros = 0, int line = __builtin_LINE()) {
    void* code = __builtin_return_address(0);
    if ((bytes != 4 && bytes != 8 && bytes != 16) || zeros > bytes)
        return cuda_on_cpu::trap("__pipeline_memcpy_async copies 4, 8 or 16 bytes", line);
    for (auto address : {reinterpret_cast<uintptr_t>(to), reinterpret_cast<uintptr_t>(from)})
        if (address % bytes) cuda_on_cpu::misaligned(address, bytes, "an asynchronous copy", "uses", line);
    auto& own = cuda_on_cpu::own_copies();
    if (own.count == own.room) {
        own.room = 2 * own.room + 16;
        own.waiting = static_cast<cuda_on_cpu::AsyncCopy*>(realloc(own.waiting, own.room * sizeof *own.waiting));
    }
    own.waiting[own.count++] = {to, from, bytes, zeros, own.group, code};
    cuda_on_cpu::lose(to, bytes, code);
}
[[maybe_unused]] CUDA_ON_CPU_UNSEEN static void __pipeline_commit() { ++cuda_on_cpu::own_copies().group; }
[[maybe_unused]] CUDA_ON_CPU_UNSEEN static void __pipeline_wait_prior(size_t groups) {
    auto& own = cuda_on_cpu::own_copies();
    size_t made = 0;
    while (made < own.count && own.waiting[made].group + groups < own.group) cuda_on_cpu::make(own.waiting[made++]);
    own.count -= made;
    for (size_t i = 0; i < own.count; ++i) own.waiting[i] = own.waiting[i + made];
}

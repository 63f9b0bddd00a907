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

template <class Item>
static void copy_now(void* to, const void* from, size_t bytes) {  // the accesses are the thread's
    Item value{};
    if (bytes) value = *static_cast<const Item*>(from);
    memset(reinterpret_cast<char*>(&value) + bytes, 0, sizeof value - bytes);
    *static_cast<Item*>(to) = value;
}

}  // namespace cuda_on_cpu

[[maybe_unused]] CUDA_ON_CPU_UNSEEN static void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0,
                                                                        int line = __builtin_LINE()) {
    if ((bytes != 4 && bytes != 8 && bytes != 16) || zeros > bytes)
        return cuda_on_cpu::trap("__pipeline_memcpy_async copies 4, 8 or 16 bytes", line);
    auto& own = cuda_on_cpu::own_copies();
    if (own.count == own.room) {
        own.room = 2 * own.room + 16;
        own.waiting = static_cast<cuda_on_cpu::AsyncCopy*>(realloc(own.waiting, own.room * sizeof *own.waiting));
    }
    own.waiting[own.count++] = {to, from, bytes, zeros, own.group};
}
[[maybe_unused]] CUDA_ON_CPU_UNSEEN static void __pipeline_commit() { ++cuda_on_cpu::own_copies().group; }
[[maybe_unused]] CUDA_ON_CPU_UNSEEN static void __pipeline_wait_prior(size_t groups) {
    auto& own = cuda_on_cpu::own_copies();
    size_t made = 0;
    for (; made < own.count && own.waiting[made].group + groups < own.group; ++made) {
        const cuda_on_cpu::AsyncCopy copy = own.waiting[made];
        const size_t bytes = copy.bytes - copy.zeros;
        if (copy.bytes == 4) cuda_on_cpu::copy_now<unsigned>(copy.to, copy.from, bytes);
        else if (copy.bytes == 8) cuda_on_cpu::copy_now<uint2>(copy.to, copy.from, bytes);
        else cuda_on_cpu::copy_now<uint4>(copy.to, copy.from, bytes);
    }
    own.count -= made;
    for (size_t i = 0; i < own.count; ++i) own.waiting[i] = own.waiting[i + made];
}

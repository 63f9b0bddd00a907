// The memory that the submission's host code allocates, so that a kernel that gets its address is found.
//
// A block that another library frees stays in the table. Its address may then be a tensor's: known regions come first.
#pragma once
#pragma GCC system_header

#include <new>
#include <stdint.h>
#include <stdlib.h>

#include "scheduler.h"

namespace cuda_on_cpu {

constexpr int max_host_blocks = 1024;  // the latest ones
struct HostBlock {
    uintptr_t begin, end;
};
CUDA_ON_CPU_STATE HostBlock host_blocks[max_host_blocks];
CUDA_ON_CPU_STATE unsigned host_block_count = 0;

CUDA_ON_CPU_UNSEEN static inline void* note_block(void* memory, size_t bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    if (block.running >= 0) all_known = false;  // the kernel's own memory
    else if (memory) host_blocks[host_block_count++ % max_host_blocks] = {begin, begin + bytes};
    return memory;
}

CUDA_ON_CPU_UNSEEN static inline bool is_of_host(uintptr_t address) {
    for (const HostBlock& each : host_blocks)
        if (address >= each.begin && address < each.end) return true;
    return false;
}

CUDA_ON_CPU_UNSEEN static inline void free_block(void* memory) {
    if (block.running >= 0) return;  // another thread that got this address would seem to race with this one
    for (HostBlock& each : host_blocks)
        if (memory && each.begin == reinterpret_cast<uintptr_t>(memory)) each = {0, 0};
    free(memory);
}

}  // namespace cuda_on_cpu

// `translate` calls these in place of the C library's functions.
[[maybe_unused]] static void* cuda_on_cpu_malloc(size_t bytes) { return cuda_on_cpu::note_block(malloc(bytes), bytes); }
[[maybe_unused]] static void* cuda_on_cpu_calloc(size_t count, size_t bytes) {
    return cuda_on_cpu::note_block(calloc(count, bytes), count * bytes);
}
[[maybe_unused]] static void cuda_on_cpu_free(void* memory) { cuda_on_cpu::free_block(memory); }

// Hidden, they are called by this library alone. Not with torch's headers: most of what those allocate, torch frees.
#if !defined(CUDA_ON_CPU_LINKED) && !defined(CUDA_ON_CPU_TORCH)
asm(".hidden _Znwm\n.hidden _Znam\n.hidden _ZdlPv\n.hidden _ZdaPv\n.hidden _ZdlPvm\n.hidden _ZdaPvm");
CUDA_ON_CPU_UNSEEN void* operator new(size_t bytes) {
    void* memory = cuda_on_cpu::note_block(malloc(bytes ? bytes : 1), bytes);
    if (!memory) throw std::bad_alloc();
    return memory;
}
CUDA_ON_CPU_UNSEEN void* operator new[](size_t bytes) { return operator new(bytes); }
CUDA_ON_CPU_UNSEEN void operator delete(void* memory) noexcept { cuda_on_cpu::free_block(memory); }
CUDA_ON_CPU_UNSEEN void operator delete[](void* memory) noexcept { cuda_on_cpu::free_block(memory); }
CUDA_ON_CPU_UNSEEN void operator delete(void* memory, size_t) noexcept { cuda_on_cpu::free_block(memory); }
CUDA_ON_CPU_UNSEEN void operator delete[](void* memory, size_t) noexcept { cuda_on_cpu::free_block(memory); }
#endif

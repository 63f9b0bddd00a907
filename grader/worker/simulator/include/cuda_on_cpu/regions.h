// The memory that kernels may use: tensors, shared and device variables, and what cudaMalloc returned.
#pragma once
#pragma GCC system_header

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <type_traits>

#include "types.h"

namespace cuda_on_cpu {

// `managed` and `pinned` are memory that the host may use, too, once the GPU is done with it.
enum class Space : unsigned char { tensor, allocated, managed, pinned, shared, dynamic, variable, constant };

struct Region {
    uintptr_t begin, end;
    size_t before, after;  // bytes around it that belong to nobody
    const char* name;
    const char* type;         // holds the type as C++ writes it, or ""
    unsigned item, row, row_of_rows;  // bytes of an element and of the array's inner dimensions, or 0
    int line;                 // of the declaration, or 0
    Space space;
    bool read_only;
    int busy = 0, changed = 0;  // the lines of the launch or copy that may still use it, and that may still write it
};

constexpr int max_regions = 512;
CUDA_ON_CPU_STATE Region regions[max_regions];
CUDA_ON_CPU_STATE int region_count = 0;
CUDA_ON_CPU_STATE uintptr_t of_gpu_begin = UINTPTR_MAX, of_gpu_end = 0;  // around all memory that the host may not use at will
CUDA_ON_CPU_STATE bool regions_complete = true;  // false: some did not fit, so an unknown address may be right

CUDA_ON_CPU_UNSEEN static void add_region(const Region& region) {
    if (region.space != Space::shared && region.space != Space::dynamic) {
        if (region.begin < of_gpu_begin) of_gpu_begin = region.begin;
        if (region.end > of_gpu_end) of_gpu_end = region.end;
    }
    if (region_count == max_regions) regions_complete = false;
    else regions[region_count++] = region;
}

CUDA_ON_CPU_UNSEEN static void remove_regions(Space space, uintptr_t begin = 0) {  // 0: all of this kind
    int kept = 0;
    for (int i = 0; i < region_count; ++i)
        if (regions[i].space != space || (begin && regions[i].begin != begin)) regions[kept++] = regions[i];
    region_count = kept;
}

CUDA_ON_CPU_UNSEEN static Region* region_at(uintptr_t address) {
    for (int i = 0; i < region_count; ++i)
        if (address >= regions[i].begin && address < regions[i].end) return &regions[i];
    return nullptr;
}

CUDA_ON_CPU_UNSEEN static inline bool is_of_both(const Region& region) {
    return region.space == Space::managed || region.space == Space::pinned;
}

// A tensor that the function was given, or has made.
CUDA_ON_CPU_UNSEEN static inline bool is_output(const Region& region) { return region.space == Space::tensor && !region.read_only; }

// A variable of the GPU at file scope, which the host has under the same name.
CUDA_ON_CPU_UNSEEN static inline bool is_variable(const Region& region) {
    return region.space == Space::variable || region.space == Space::constant;
}

// The GPU is done with everything that was launched before.
CUDA_ON_CPU_UNSEEN static void all_done() {
    for (int i = 0; i < region_count; ++i) regions[i].busy = regions[i].changed = 0;
}

// The region whose guard this address is in.
CUDA_ON_CPU_UNSEEN static const Region* region_beside(uintptr_t address) {
    for (int i = 0; i < region_count; ++i)
        if (address >= regions[i].begin - regions[i].before && address < regions[i].end + regions[i].after) return &regions[i];
    return nullptr;
}

template <class T>
CUDA_ON_CPU_UNSEEN static Region region_of(T& object, const char* name, const char* type, int line, Space space) {
    using Row = typename std::remove_extent<T>::type;
    using Inner = typename std::remove_extent<Row>::type;
    const auto begin = reinterpret_cast<uintptr_t>(&object);
    const unsigned item = sizeof(typename std::remove_all_extents<T>::type);
    return {begin, begin + sizeof object, 0, 0, name, type, item, std::is_array<Row>::value ? unsigned(sizeof(Row)) : 0,
            std::is_array<Inner>::value ? unsigned(sizeof(Inner)) : 0, line, space, false};
}

struct Variable {  // registers a `__device__` or `__constant__` variable when the library is loaded
    template <class T>
    CUDA_ON_CPU_UNSEEN Variable(T& object, const char* name, Space space, int line = __builtin_LINE()) {
        add_region(region_of(object, name, __PRETTY_FUNCTION__, line, space));
    }
};

struct Argument {  // a pointer that the launch passed
    uintptr_t address;
    unsigned item;
    int number;
};
CUDA_ON_CPU_STATE Argument pointers[16];
CUDA_ON_CPU_STATE int pointer_count = 0;

// Writes "`tile[3][4]`", "element 7 of `x`" or "element 7 of the kernel's argument 2".
CUDA_ON_CPU_UNSEEN static void describe_place(char* text, size_t size, uintptr_t address) {
    if (const Region* region = region_at(address)) {
        const unsigned at = address - region->begin, item = region->item ? region->item : 1;
        if (region->space == Space::dynamic) snprintf(text, size, "byte %u of the dynamic shared memory", at);
        else if (region->row_of_rows)
            snprintf(text, size, "`%s[%u][%u][%u]`", region->name, at / region->row, at % region->row / region->row_of_rows,
                     at % region->row_of_rows / item);
        else if (region->row) snprintf(text, size, "`%s[%u][%u]`", region->name, at / region->row, at % region->row / item);
        else if (region->end - region->begin == item) snprintf(text, size, "`%s`", region->name);
        else if (region->space == Space::shared || is_variable(*region) || (region->space == Space::managed && region->line))
            snprintf(text, size, "`%s[%u]`", region->name, at / item);
        else snprintf(text, size, "element %u of `%s`", at / item, region->name);
        return;
    }
    const Argument* nearest = nullptr;
    for (int i = 0; i < pointer_count; ++i)
        if (pointers[i].address <= address && (!nearest || pointers[i].address > nearest->address)) nearest = &pointers[i];
    if (nearest && address - nearest->address < (1ull << 32))
        snprintf(text, size, "element %zu of argument %d of the kernel", size_t(address - nearest->address) / nearest->item,
                 nearest->number);
    else snprintf(text, size, "the address 0x%zx", size_t(address));
}

}  // namespace cuda_on_cpu

struct cuda_on_cpu_Buffer {  // a tensor, as Python describes it
    void* begin;
    size_t bytes, guard;
    unsigned item;
    int read_only;
    const char* name;  // the caller keeps it
};

#ifndef CUDA_ON_CPU_LINKED
// Replaces the tensors that kernels may use.
extern "C" __attribute__((visibility("default"), used)) CUDA_ON_CPU_UNSEEN void cuda_on_cpu_buffers(const cuda_on_cpu_Buffer* buffers,
                                                                                        int count) {
    using namespace cuda_on_cpu;
    remove_regions(Space::tensor);
    all_done();
    for (int i = 0; i < count; ++i) {
        const auto begin = reinterpret_cast<uintptr_t>(buffers[i].begin);
        add_region({begin, begin + buffers[i].bytes, buffers[i].guard, buffers[i].guard, buffers[i].name, "", buffers[i].item, 0, 0, 0,
                    Space::tensor, buffers[i].read_only != 0});
    }
}
#endif

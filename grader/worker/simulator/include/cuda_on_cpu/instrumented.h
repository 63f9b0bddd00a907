// The functions that `-fsanitize=thread,alignment,bounds,signed-integer-overflow` makes the compiler call, in place of its
// run-time libraries.
#pragma once
#pragma GCC system_header

#include "accesses.h"

#define CUDA_ON_CPU_HOOK extern "C" __attribute__((visibility("hidden"), used, noinline)) CUDA_ON_CPU_UNSEEN

CUDA_ON_CPU_HOOK void __tsan_init() {}
CUDA_ON_CPU_HOOK void __tsan_func_entry(void*) {}
CUDA_ON_CPU_HOOK void __tsan_func_exit() {}
CUDA_ON_CPU_HOOK void __tsan_vptr_update(void**, void*) {}
CUDA_ON_CPU_HOOK void __tsan_vptr_read(void**) {}

#define CUDA_ON_CPU_ACCESS(name, size, writes) \
    CUDA_ON_CPU_HOOK void __tsan_##name(void* address) { \
        const auto at = reinterpret_cast<uintptr_t>(address); \
        if (cuda_on_cpu::block.running < 0) cuda_on_cpu::access_of_host(at, writes, __builtin_return_address(0)); \
        else cuda_on_cpu::access(at, size, cuda_on_cpu::How::plain, writes, __builtin_return_address(0)); \
    }
#define CUDA_ON_CPU_VOLATILE(name, size, writes) \
    CUDA_ON_CPU_HOOK void __tsan_##name(void* address) { \
        const auto at = reinterpret_cast<uintptr_t>(address); \
        if (cuda_on_cpu::block.running < 0) cuda_on_cpu::access_of_host(at, writes, __builtin_return_address(0)); \
        else cuda_on_cpu::access_volatile(address, size, writes, __builtin_return_address(0)); \
    }
#define CUDA_ON_CPU_SIZE(size) \
    CUDA_ON_CPU_ACCESS(read##size, size, false) \
    CUDA_ON_CPU_ACCESS(write##size, size, true) \
    CUDA_ON_CPU_ACCESS(unaligned_read##size, size, false) \
    CUDA_ON_CPU_ACCESS(unaligned_write##size, size, true) \
    CUDA_ON_CPU_VOLATILE(volatile_read##size, size, false) \
    CUDA_ON_CPU_VOLATILE(volatile_write##size, size, true) \
    CUDA_ON_CPU_VOLATILE(unaligned_volatile_read##size, size, false) \
    CUDA_ON_CPU_VOLATILE(unaligned_volatile_write##size, size, true)
CUDA_ON_CPU_SIZE(1)
CUDA_ON_CPU_SIZE(2)
CUDA_ON_CPU_SIZE(4)
CUDA_ON_CPU_SIZE(8)
CUDA_ON_CPU_SIZE(16)

CUDA_ON_CPU_HOOK void __tsan_read_range(void* address, size_t size) {
    cuda_on_cpu::access(reinterpret_cast<uintptr_t>(address), size, cuda_on_cpu::How::plain, false, __builtin_return_address(0));
}
CUDA_ON_CPU_HOOK void __tsan_write_range(void* address, size_t size) {
    cuda_on_cpu::access(reinterpret_cast<uintptr_t>(address), size, cuda_on_cpu::How::plain, true, __builtin_return_address(0));
}

// Atomics of C++, which the host's code uses.
#define CUDA_ON_CPU_FETCH(bits, T, name) \
    CUDA_ON_CPU_HOOK T __tsan_atomic##bits##_fetch_##name(volatile T* a, T v, int) { return __atomic_fetch_##name(a, v, 5); }
#define CUDA_ON_CPU_ATOMICS(bits, T) \
    CUDA_ON_CPU_HOOK T __tsan_atomic##bits##_load(const volatile T* a, int) { return __atomic_load_n(a, 5); } \
    CUDA_ON_CPU_HOOK void __tsan_atomic##bits##_store(volatile T* a, T v, int) { __atomic_store_n(a, v, 5); } \
    CUDA_ON_CPU_HOOK T __tsan_atomic##bits##_exchange(volatile T* a, T v, int) { return __atomic_exchange_n(a, v, 5); } \
    CUDA_ON_CPU_FETCH(bits, T, add) \
    CUDA_ON_CPU_FETCH(bits, T, sub) \
    CUDA_ON_CPU_FETCH(bits, T, and) \
    CUDA_ON_CPU_FETCH(bits, T, or) \
    CUDA_ON_CPU_FETCH(bits, T, xor) \
    CUDA_ON_CPU_FETCH(bits, T, nand) \
    CUDA_ON_CPU_HOOK bool __tsan_atomic##bits##_compare_exchange_strong(volatile T* a, T* expected, T v, int, int) { \
        return __atomic_compare_exchange_n(a, expected, v, false, 5, 5); \
    } \
    CUDA_ON_CPU_HOOK bool __tsan_atomic##bits##_compare_exchange_weak(volatile T* a, T* expected, T v, int, int) { \
        return __atomic_compare_exchange_n(a, expected, v, false, 5, 5); \
    } \
    CUDA_ON_CPU_HOOK T __tsan_atomic##bits##_compare_exchange_val(volatile T* a, T expected, T v, int, int) { \
        __atomic_compare_exchange_n(a, &expected, v, false, 5, 5); \
        return expected; \
    }
CUDA_ON_CPU_ATOMICS(8, unsigned char)
CUDA_ON_CPU_ATOMICS(16, unsigned short)
CUDA_ON_CPU_ATOMICS(32, unsigned)
CUDA_ON_CPU_ATOMICS(64, unsigned long)
CUDA_ON_CPU_HOOK void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(5); }
CUDA_ON_CPU_HOOK void __tsan_atomic_signal_fence(int) {}

namespace cuda_on_cpu {

struct SourceLocation {
    const char* file;
    unsigned line, column;
};
struct TypeName {
    unsigned short kind, info;
    char name[1];  // quoted
};
struct Mismatch {
    SourceLocation at;
    const TypeName* type;
    unsigned char alignment_bits, kind;
};
struct Overflow {
    SourceLocation at;
    const TypeName* type;
};
struct OutOfBounds {
    SourceLocation at;
    const TypeName *array, *index;
};

CUDA_ON_CPU_UNSEEN static Text unquoted(const TypeName* type) {
    Text text;
    snprintf(text.text, sizeof text.text, "%s", type->name + (type->name[0] == '\''));
    if (char* quote = strchr(text.text, '\'')) *quote = 0;
    return text;
}

// A value that a handler gets: itself if it has at most 64 bits.
CUDA_ON_CPU_UNSEEN static long long value_of(const TypeName* type, uintptr_t given) {
    const unsigned bits = 1u << (type->info >> 1);
    const bool is_signed = type->info & 1;
    return is_signed && bits < 64 ? static_cast<long long>(given << (64 - bits)) >> (64 - bits) : static_cast<long long>(given);
}

// Only in the submission's lines, and only in kernels.
CUDA_ON_CPU_UNSEEN static void overflow(void* data, uintptr_t left, char operation, uintptr_t right) {
    const auto& what = *static_cast<Overflow*>(data);
    if (block.running < 0 || *errors.overflow || what.type->info >> 1 > 6 || strchr(what.at.file, '/')) return;
    overflowed(what.at.line, value_of(what.type, left), operation, value_of(what.type, right), unquoted(what.type).text);
}

CUDA_ON_CPU_UNSEEN static void outside_of_array(const OutOfBounds& what, uintptr_t index) {
    const Text type = unquoted(what.array);
    const char* inner = strchr(type.text, '[');
    const Region* named = nullptr;
    for (int i = 0; i < region_count; ++i) {
        const Region& region = regions[i];
        const char* found = inner && *region.type ? strstr(region.type, type.text) : nullptr;
        if (found && found - region.type > 2 && found[-2] == '=' &&
            (found[strlen(type.text)] == ']' || found[strlen(type.text)] == ';')) {
            if (named) return;  // one of several: the address tells which
            named = &region;
        } else if (inner && strstr(region.type, inner)) {
            return;  // perhaps a row of it, and the index is right for the whole
        }
    }
    const long value = value_of(what.index, index);
    char array[200];
    if (named) snprintf(array, sizeof array, value < 0 ? "before the beginning of `%s`, a `%s` declared on line %d" : "past the end of `%s`, a `%s` declared on line %d", named->name, type.text, named->line);
    else snprintf(array, sizeof array, "outside of a `%s`", type.text);
    fail(cudaErrorLaunchFailure, true, "Outside: %s uses the index %ld on line %u, %s.", thread_name(clocks.now).text, value,
         what.at.line, array);
    stop();
}

}  // namespace cuda_on_cpu

CUDA_ON_CPU_HOOK void __ubsan_handle_out_of_bounds(void* data, void* index) {
    if (cuda_on_cpu::block.running >= 0)
        cuda_on_cpu::outside_of_array(*static_cast<cuda_on_cpu::OutOfBounds*>(data), reinterpret_cast<uintptr_t>(index));
}
CUDA_ON_CPU_HOOK void __ubsan_handle_add_overflow(void* data, uintptr_t left, uintptr_t right) {
    cuda_on_cpu::overflow(data, left, '+', right);
}
CUDA_ON_CPU_HOOK void __ubsan_handle_sub_overflow(void* data, uintptr_t left, uintptr_t right) {
    cuda_on_cpu::overflow(data, left, '-', right);
}
CUDA_ON_CPU_HOOK void __ubsan_handle_mul_overflow(void* data, uintptr_t left, uintptr_t right) {
    cuda_on_cpu::overflow(data, left, '*', right);
}
CUDA_ON_CPU_HOOK void __ubsan_handle_negate_overflow(void* data, uintptr_t value) { cuda_on_cpu::overflow(data, 0, '-', value); }
CUDA_ON_CPU_HOOK void __ubsan_handle_divrem_overflow(void*, uintptr_t, uintptr_t) {}  // the division itself fails
CUDA_ON_CPU_HOOK void __ubsan_handle_type_mismatch_v1(void* data, void* pointer) {
    if (cuda_on_cpu::block.running < 0) return;
    const auto& what = *static_cast<cuda_on_cpu::Mismatch*>(data);
    char type[180];
    snprintf(type, sizeof type, "a `%s`", cuda_on_cpu::unquoted(what.type).text);
    cuda_on_cpu::misaligned(reinterpret_cast<uintptr_t>(pointer), size_t(1) << what.alignment_bits, type,
                            what.kind == 1 ? "writes" : "reads", what.at.line);
}

// CUDA's error codes, and the one place where a kernel that went wrong says so.
#pragma once
#pragma GCC system_header

#include <stdarg.h>
#include <stdio.h>

#include <type_traits>

#include "regions.h"
#include "traffic.h"
#include "types.h"

// Those that a launcher may return or compare with, whether or not the simulator reports them.
#define CUDA_ON_CPU_ERRORS(error) \
    error(cudaSuccess, 0, "no error") \
    error(cudaErrorInvalidValue, 1, "invalid argument") \
    error(cudaErrorMemoryAllocation, 2, "out of memory") \
    error(cudaErrorInitializationError, 3, "initialization error") \
    error(cudaErrorInvalidConfiguration, 9, "invalid configuration argument") \
    error(cudaErrorInvalidSymbol, 13, "invalid device symbol") \
    error(cudaErrorInvalidDevicePointer, 17, "invalid device pointer") \
    error(cudaErrorInsufficientDriver, 35, "CUDA driver version is insufficient for CUDA runtime version") \
    error(cudaErrorInvalidDeviceFunction, 98, "invalid device function") \
    error(cudaErrorNoDevice, 100, "no CUDA-capable device is detected") \
    error(cudaErrorInvalidDevice, 101, "invalid device ordinal") \
    error(cudaErrorNoKernelImageForDevice, 209, "no kernel image is available for execution on the device") \
    error(cudaErrorInvalidResourceHandle, 400, "invalid resource handle") \
    error(cudaErrorNotReady, 600, "device not ready") \
    error(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered") \
    error(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch") \
    error(cudaErrorLaunchTimeout, 702, "the launch timed out and was terminated") \
    error(cudaErrorAssert, 710, "device-side assert triggered") \
    error(cudaErrorMisalignedAddress, 716, "misaligned address") \
    error(cudaErrorLaunchFailure, 719, "unspecified launch failure") \
    error(cudaErrorCooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch") \
    error(cudaErrorNotPermitted, 800, "operation not permitted") \
    error(cudaErrorNotSupported, 801, "operation not supported") \
    error(cudaErrorUnknown, 999, "unknown error")
#define CUDA_ON_CPU_ERROR(name, number, text) name = number,
enum cudaError { CUDA_ON_CPU_ERRORS(CUDA_ON_CPU_ERROR) };
#undef CUDA_ON_CPU_ERROR
typedef cudaError cudaError_t;

namespace cuda_on_cpu {

struct Errors {
    cudaError_t last = cudaSuccess;
    bool broken = false;  // as on a GPU: after a failed kernel every later call fails
    char text[600] = "";    // what went wrong, in a sentence
    char observed[600] = "";  // what was wrong with a kernel that ran to its end
    char overflow[300] = "";  // the first integer that did not fit: why a result is wrong
    char unset[300] = "";  // a read of shared memory that nobody wrote: why a result is NaN
    char reason[200] = "";  // why the last launch was refused
};
CUDA_ON_CPU_STATE Errors errors;

__attribute__((format(printf, 3, 4))) CUDA_ON_CPU_UNSEEN static void fail(cudaError_t code, bool broken, const char* format, ...) {
    if (errors.broken) return;
    errors.last = code;
    errors.broken = broken;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(errors.text, sizeof errors.text, format, arguments);
    va_end(arguments);
}

// Keeps the first thing that is wrong with a kernel and does not stop it.
__attribute__((format(printf, 1, 2))) CUDA_ON_CPU_UNSEEN static void observe(const char* format, ...) {
    if (*errors.observed) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(errors.observed, sizeof errors.observed, format, arguments);
    va_end(arguments);
}

// Whether a number is what a variable or shared memory without a value holds: then that is the bug.
CUDA_ON_CPU_UNSEEN static bool is_unset(long long number) {
    constexpr auto of_variables = static_cast<long long>(0xfefefefefefefefe), of_memory = static_cast<long long>(nobodys);
    return number == of_variables || number == int(of_variables) || number == of_memory || number == int(of_memory);
}

// An operation of a kernel's thread on integers wraps around, as on a GPU.
CUDA_ON_CPU_UNSEEN static void overflowed(int line, long long left, char operation, long long right, const char* type) {
    if (*errors.overflow || is_unset(left) || is_unset(right)) return;
    if (operation != '-' && left > right) {  // compilers exchange them
        const long long smaller = right;
        right = left, left = smaller;
    }
    char where[40] = "";
    if (line > 0) snprintf(where, sizeof where, " on line %d", line);
    snprintf(errors.overflow, sizeof errors.overflow, "Overflow: %lld %c %lld%s does not fit in its type, `%s`.%s", left, operation,
             right, where, type, strstr(type, "long") ? "" : " Use a wider one, such as `long long`.");
}

// A block's number, as a factor: an unsigned number, but for a product with an `int`. That wraps around, which was not
// meant. The factor is a copy, so that reading it is the kernel's access.
struct Coordinate {
    unsigned value;
    int line;
    Coordinate(unsigned value, int line) : value(value), line(line) {}
    operator unsigned() const { return value; }
};
template <class T>
using Product = typename std::enable_if<std::is_integral<T>::value && std::is_signed<T>::value && sizeof(T) <= 4, unsigned>::type;
template <class T>
__forceinline__ CUDA_ON_CPU_UNSEEN static Product<T> operator*(Coordinate block, T factor) {
    if (factor > 0 && static_cast<long long>(block.value) * factor > 0xffffffffll)
        overflowed(block.line, block.value, '*', factor, "unsigned int");
    return block.value * factor;
}
template <class T>
__forceinline__ CUDA_ON_CPU_UNSEEN static Product<T> operator*(T factor, Coordinate block) {
    return block * factor;
}

}  // namespace cuda_on_cpu

#ifndef CUDA_ON_CPU_LINKED  // otherwise header_build.py has compiled these functions
// What `observe` kept, an overflow, and why a result is NaN, each once, or a null pointer.
extern "C" __attribute__((visibility("default"), used)) CUDA_ON_CPU_UNSEEN const char* cuda_on_cpu_observed() {
    static char taken[sizeof cuda_on_cpu::errors.observed];
    auto& errors = cuda_on_cpu::errors;
    char* kept = *errors.observed ? errors.observed : *errors.overflow ? errors.overflow : errors.unset;
    snprintf(taken, sizeof taken, "%s", kept);
    *kept = 0;
    return *taken ? taken : nullptr;
}

// Remarks about how warps use memory, once, or a null pointer.
extern "C" __attribute__((visibility("default"), used)) CUDA_ON_CPU_UNSEEN const char* cuda_on_cpu_traffic() {
    static char taken[sizeof cuda_on_cpu::traffic.text];
    memcpy(taken, cuda_on_cpu::traffic.text, sizeof taken);
    *cuda_on_cpu::traffic.text = 0;
    return *taken ? taken : nullptr;
}

// Lists the launches from now on, or no longer, and returns the list up to now: "launch" with its line, the grid in x, y
// and z, the threads of a block, bytes of shared memory, atomics, and the accesses of the busiest thread: in the busiest
// block, in all blocks, and how many more they are in all blocks than those of other warps. Before it there is "kernel"
// with GCC's __PRETTY_FUNCTION__, or with nothing if it is not known; before that an "access" for each place where all lanes
// of its first warp make the same accesses: line, load or store, global or shared, the sectors of some turns or the
// conflicts in one bank, how many turns these are, bytes per lane, and all turns; "partly" for a long loop of some lanes
// of this warp: line, the lanes as bits, and turns; "wait" for a call that makes the host wait: its line and name; at the
// end "total" and all launches. If `on` is 2, launches are listed and do not run.
extern "C" __attribute__((visibility("default"), used)) CUDA_ON_CPU_UNSEEN const char* cuda_on_cpu_counted(int on) {
    static char taken[sizeof cuda_on_cpu::traffic.counted + 40];
    snprintf(taken, sizeof taken, "%stotal %lu\n", cuda_on_cpu::traffic.counted, cuda_on_cpu::traffic.launches);
    cuda_on_cpu::traffic.counts = on;
    cuda_on_cpu::traffic.plans = on == 2;
    memset(cuda_on_cpu::traffic.steps, 0, sizeof cuda_on_cpu::traffic.steps);
    cuda_on_cpu::traffic.launches = cuda_on_cpu::traffic.atomics = 0;
    *cuda_on_cpu::traffic.counted = 0;
    return taken;
}

// Why the last launch was refused, although the submission has read the error; otherwise a null pointer.
extern "C" __attribute__((visibility("default"), used)) CUDA_ON_CPU_UNSEEN const char* cuda_on_cpu_refused() {
    return *cuda_on_cpu::errors.reason ? cuda_on_cpu::errors.text : nullptr;
}
#endif

[[maybe_unused]] static cudaError_t cudaPeekAtLastError() { return cuda_on_cpu::errors.last; }

[[maybe_unused]] static cudaError_t cudaGetLastError() {
    cudaError_t code = cuda_on_cpu::errors.last;
    if (!cuda_on_cpu::errors.broken) cuda_on_cpu::errors.last = cudaSuccess;
    return code;
}

// A refused launch says why as well, which a GPU does not.
[[maybe_unused]] static const char* cudaGetErrorString(cudaError_t code) {
    static char refused[300];
    const char* reason = cuda_on_cpu::errors.reason;
    const char* name = code == cudaErrorInvalidValue ? "invalid argument" : "invalid configuration argument";
    if (*reason && (code == cudaErrorInvalidValue || code == cudaErrorInvalidConfiguration)) {
        snprintf(refused, sizeof refused, "%s: %s", name, reason);
        return refused;
    }
    if (code == cudaErrorLaunchFailure && cuda_on_cpu::errors.broken) return cuda_on_cpu::errors.text;
#define CUDA_ON_CPU_ERROR(name, number, text) case name: return text;
    switch (code) { CUDA_ON_CPU_ERRORS(CUDA_ON_CPU_ERROR) }
#undef CUDA_ON_CPU_ERROR
    return "unrecognized error code";
}

[[maybe_unused]] static const char* cudaGetErrorName(cudaError_t code) {
#define CUDA_ON_CPU_ERROR(name, number, text) case name: return #name;
    switch (code) { CUDA_ON_CPU_ERRORS(CUDA_ON_CPU_ERROR) }
#undef CUDA_ON_CPU_ERROR
    return "unrecognized error code";
}

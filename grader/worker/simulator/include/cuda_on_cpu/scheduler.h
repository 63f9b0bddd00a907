// Runs the threads of one block on fibers.
//
// A fiber takes the next thread, runs it to its end and takes the next: a kernel without barriers is a plain loop on one
// fiber. Only where a thread must wait does its fiber park, and another fiber goes on with the threads that are left.
// When nobody can run and some are parked, the block is stuck: that is reported, not waited for.
#pragma once
#pragma GCC system_header

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "clocks.h"
#include "errors.h"
#include "types.h"

namespace cuda_on_cpu {

constexpr int max_threads = 1024, multiprocessors = 132;
constexpr size_t stack_bytes = 256 * 1024, guard_bytes = 64 * 1024;  // a multiple of every page size in use

struct Body {  // the kernel with its arguments
    void* object;
    void (*call)(void*);
};

enum class Wait : unsigned char { nothing, block, warp, active };

struct Fiber {
    ucontext_t context;
    jmp_buf here;
    char* stack = nullptr;
    bool started = false;
    int thread = -1;  // that it runs, or -1: idle
    Wait wait = Wait::nothing;
    int line = 0;  // of the call it waits in
    unsigned active = 0;  // lanes, for a thread that has asked
    const char* call = "";
};

struct Exchange {  // one meeting of the lanes in `mask`; `unread` lanes have still to fetch their result
    unsigned mask, needed, arrived, unread;
    int line;
    const char* call;
    bool complete;
    uint64_t values[32];
};

struct Block {
    Body body;
    int threads = 0, next = 0, fibers = 0, running = -1;
    bool backwards = false, stopped = false;
    int waiting = 0, votes = 0, result = 0;  // at the barrier
    size_t static_shared = 0;                // bytes that it has used
    unsigned long serial = 0;                // which block this is, over all launches; 0: none has run
    short fiber_of[max_threads];
    bool exchanged = false;  // some entry below may be in use
    Exchange exchanges[max_threads / 32][32];
};

CUDA_ON_CPU_STATE Fiber fibers[max_threads];
CUDA_ON_CPU_STATE Block block;
CUDA_ON_CPU_STATE jmp_buf scheduler;

CUDA_ON_CPU_UNSEEN static void run_threads();

CUDA_ON_CPU_UNSEEN static void place(int thread) {
    run_as(thread);
    threadIdx.x = thread % blockDim.x;
    threadIdx.y = thread / blockDim.x % blockDim.y;
    threadIdx.z = thread / (blockDim.x * blockDim.y);
}

// setjmp and longjmp save no signal mask: a switch costs nanoseconds, swapcontext two system calls.
__attribute__((noinline)) CUDA_ON_CPU_UNSEEN static void to_scheduler() {
    if (!_setjmp(fibers[block.running].here)) _longjmp(scheduler, 1);
}

__attribute__((noinline)) CUDA_ON_CPU_UNSEEN static void resume(int index) {
    Fiber& fiber = fibers[index];
    block.running = index;
    if (fiber.thread >= 0) place(fiber.thread);
    if (_setjmp(scheduler)) return;
    if (fiber.started) _longjmp(fiber.here, 1);
    fiber.started = true;
    setcontext(&fiber.context);
}

CUDA_ON_CPU_UNSEEN static bool prepare(Fiber& fiber) {
    if (fiber.started) return true;
    if (!fiber.stack) {
        void* memory = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (memory == MAP_FAILED) return false;
        mprotect(memory, guard_bytes, PROT_NONE);  // a stack that overflows is a crash, not a wrong answer
        fiber.stack = static_cast<char*>(memory) + guard_bytes;
    }
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = stack_bytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, run_threads, 0);
    return true;
}

CUDA_ON_CPU_UNSEEN static void run_threads() {
    for (;;) {
        while (block.next < block.threads) {
            int thread = block.backwards ? block.threads - 1 - block.next : block.next;
            ++block.next;
            fibers[block.running].thread = thread;
            block.fiber_of[thread] = block.running;
            place(thread);
            block.body.call(block.body.object);
            fibers[block.running].thread = -1;
        }
        to_scheduler();
    }
}

// Ends the block from inside one of its threads; the message is set already.
CUDA_ON_CPU_UNSEEN static void stop() {
    block.stopped = true;
    if (block.running >= 0) to_scheduler();
}

CUDA_ON_CPU_UNSEEN static void park(Wait wait, const char* call, int line) {
    Fiber& fiber = fibers[block.running];
    fiber.wait = wait;
    fiber.call = call;
    fiber.line = line;
    to_scheduler();
}

CUDA_ON_CPU_UNSEEN static void report_stuck() {
    const Fiber* first = nullptr;
    int parked = 0, ended = block.threads;
    for (int i = 0; i < block.fibers; ++i) {
        const Fiber& fiber = fibers[i];
        if (fiber.thread < 0) continue;
        ++parked;
        --ended;
        if (!first) first = &fiber;
    }
    for (int i = 0; i < block.fibers; ++i) {
        const Fiber& other = fibers[i];
        if (other.thread < 0 || (other.line == first->line && other.call == first->call)) continue;
        return fail(cudaErrorLaunchFailure, true,
                    "The threads of block (%u, %u, %u) wait for each other: some at %s on line %d, others at %s on line %d. "
                    "All of them must reach the same call; on a GPU this hangs or gives wrong results.",
                    blockIdx.x, blockIdx.y, blockIdx.z, first->call, first->line, other.call, other.line);
    }
    if (first->wait == Wait::warp) {
        const int warp = first->thread / 32;
        unsigned lanes = 0;
        for (int i = 0; i < block.fibers; ++i)
            if (fibers[i].thread >= 0 && fibers[i].thread / 32 == warp) lanes |= 1u << fibers[i].thread % 32;
        return fail(cudaErrorLaunchFailure, true,
                    "In block (%u, %u, %u), lane %d of warp %d ended without reaching %s on line %d, where %d other lane%s. "
                    "Every lane that the mask names must reach it: is it inside an `if`, or after an early `return`?",
                    blockIdx.x, blockIdx.y, blockIdx.z, __builtin_ctz(~lanes), warp, first->call, first->line,
                    __builtin_popcount(lanes), __builtin_popcount(lanes) == 1 ? " waits" : "s wait");
    }
    fail(cudaErrorLaunchFailure, true,
         "In block (%u, %u, %u), %d of %d threads wait at %s on line %d, and the other %d ended without reaching it. "
         "Every thread of the block must reach it: is it inside an `if`, or after an early `return`?",
         blockIdx.x, blockIdx.y, blockIdx.z, parked, block.threads, first->call, first->line, ended);
}

// Which lanes are active together is known when no thread can go on without the answer: those at the same line.
static bool answer_active() {
    bool any = false;
    for (int i = 0; i < block.fibers; ++i) {
        Fiber& fiber = fibers[i];
        if (fiber.thread < 0 || fiber.wait != Wait::active) continue;
        any = true;
        fiber.active = 0;
        for (int lane = 0, first = fiber.thread & ~31; lane < 32 && first + lane < block.threads; ++lane) {
            const Fiber& other = fibers[block.fiber_of[first + lane]];
            const bool asks = other.thread == first + lane && other.wait == Wait::active;
            if (asks && other.line == fiber.line) fiber.active |= 1u << lane;
        }
    }
    for (int i = 0; i < block.fibers; ++i)
        if (fibers[i].wait == Wait::active) fibers[i].wait = Wait::nothing;
    return any;
}

// Runs every thread of the block that blockIdx names. False: it was stopped.
CUDA_ON_CPU_UNSEEN static bool run_block(Body body, int threads, bool backwards) {
    block.body = body;
    block.threads = threads;
    block.next = block.fibers = block.waiting = block.votes = 0;
    block.backwards = backwards;
    block.stopped = false;
    block.static_shared = 0;
    ++block.serial;
    begin_block_clocks(threads);
    if (block.exchanged) {
        for (auto& warp : block.exchanges)
            for (Exchange& exchange : warp) exchange.mask = 0;
        block.exchanged = false;
    }
    for (bool progress = true; progress && !block.stopped;) {
        progress = false;
        for (int i = 0; i < block.fibers && !block.stopped; ++i)
            if (fibers[i].thread >= 0 && fibers[i].wait == Wait::nothing) resume(i), progress = true;
        while (block.next < block.threads && !block.stopped) {
            int i = block.fibers;  // while threads are left, no fiber that has started is idle
            if (!prepare(fibers[i])) {
                fail(cudaErrorMemoryAllocation, true, "There is no memory for the threads of a block.");
                block.stopped = true;
                break;
            }
            ++block.fibers;
            resume(i), progress = true;
        }
        if (!progress && !block.stopped) progress = answer_active();
    }
    settle();
    block.stopped |= errors.broken;
    bool stuck = false;
    for (int i = 0; i < block.fibers; ++i) stuck |= fibers[i].thread >= 0;
    if (stuck && !block.stopped) report_stuck();
    if (stuck || block.stopped) {
        block.stopped = true;
        for (int i = 0; i < block.fibers; ++i) fibers[i].started = false, fibers[i].thread = -1, fibers[i].wait = Wait::nothing;
    }
    block.running = -1;
    return !block.stopped;
}

CUDA_ON_CPU_UNSEEN static int barrier(int vote, const char* call, int line) {
    if (block.running < 0) {
        fail(cudaErrorLaunchFailure, true, "%s on line %d was called outside a kernel.", call, line);
        return 0;
    }
    block.votes += vote != 0;
    if (++block.waiting == block.threads) {
        for (int i = 0; i < block.fibers; ++i) {
            const Fiber& other = fibers[i];
            if (i != block.running && other.thread >= 0 && other.line != line) {
                fail(cudaErrorLaunchFailure, true,
                     "The threads of block (%u, %u, %u) meet at different barriers: some at %s on line %d, others at %s on line %d. "
                     "All of them must reach the same call; on a GPU this hangs or gives wrong results.",
                     blockIdx.x, blockIdx.y, blockIdx.z, other.call, other.line, call, line);
                stop();
            }
        }
        for (int i = 0; i < block.fibers; ++i)
            if (fibers[i].wait == Wait::block) fibers[i].wait = Wait::nothing;
        meet_in_block();
        block.result = block.votes;
        block.waiting = block.votes = 0;
    } else {
        park(Wait::block, call, line);
    }
    return block.result;
}

}  // namespace cuda_on_cpu

[[maybe_unused]] static void __syncthreads(int line = __builtin_LINE()) {
    cuda_on_cpu::barrier(0, "__syncthreads()", line);
}
[[maybe_unused]] static int __syncthreads_count(int predicate, int line = __builtin_LINE()) {
    return cuda_on_cpu::barrier(predicate, "__syncthreads_count()", line);
}
[[maybe_unused]] static int __syncthreads_or(int predicate, int line = __builtin_LINE()) {
    return cuda_on_cpu::barrier(predicate, "__syncthreads_or()", line) != 0;
}
[[maybe_unused]] static int __syncthreads_and(int predicate, int line = __builtin_LINE()) {
    return cuda_on_cpu::barrier(predicate, "__syncthreads_and()", line) == cuda_on_cpu::block.threads;
}

// Streams that the default stream does not wait for by itself, and whether it, or the host, waits for their work.
#pragma once
#pragma GCC system_header

#include "errors.h"

namespace cuda_on_cpu {

// How many of each such stream's launches and copies a stream, an event or the host comes after.
constexpr int most_streams = 16;
struct Seen {
    unsigned long count[most_streams];
    CUDA_ON_CPU_UNSEEN void add(const Seen& other) {
        for (int i = 0; i < most_streams; ++i)
            if (other.count[i] > count[i]) count[i] = other.count[i];
    }
};

}  // namespace cuda_on_cpu

struct CUstream_st {
    unsigned long queued, needed;  // all work, and the last that may write to an output
    int line;                      // of that
    bool used;
    cuda_on_cpu::Seen seen;
};
typedef CUstream_st* cudaStream_t;

namespace cuda_on_cpu {

// The other streams are one here: the default stream and those that it waits for, and that wait for it.
CUDA_ON_CPU_STATE CUstream_st own_streams[most_streams], other_streams;
CUDA_ON_CPU_STATE Seen seen_by_host;

CUDA_ON_CPU_UNSEEN static bool is_own(cudaStream_t stream) { return stream >= own_streams && stream < own_streams + most_streams; }
CUDA_ON_CPU_UNSEEN static Seen& seen_by(cudaStream_t stream) { return is_own(stream) ? stream->seen : other_streams.seen; }

// A null pointer if there are too many: those are not followed.
CUDA_ON_CPU_UNSEEN static cudaStream_t new_stream() {
    for (CUstream_st& each : own_streams) {
        if (each.used) continue;
        each.used = true;
        return &each;
    }
    return nullptr;
}

CUDA_ON_CPU_UNSEEN static void queue(cudaStream_t stream, bool writes_output, int line) {
    if (!is_own(stream)) return;
    stream->seen.count[stream - own_streams] = ++stream->queued;
    if (writes_output) stream->needed = stream->queued, stream->line = line;
}

CUDA_ON_CPU_UNSEEN static void host_waits() {
    for (int i = 0; i < most_streams; ++i) seen_by_host.count[i] = own_streams[i].queued;
}

}  // namespace cuda_on_cpu

#ifndef CUDA_ON_CPU_LINKED
// The function has returned: its caller waits for the default stream alone.
extern "C" __attribute__((visibility("default"), used)) CUDA_ON_CPU_UNSEEN void cuda_on_cpu_returned() {
    using namespace cuda_on_cpu;
    for (int i = 0; i < most_streams; ++i) {
        const unsigned long needed = own_streams[i].needed;
        if (needed > seen_by_host.count[i] && needed > other_streams.seen.count[i])
            observe("Unfinished: the function returns, but nothing waits for the stream of its own on which work is started on line "
                    "%d. On a GPU, the output may be read before it is written.", own_streams[i].line);
    }
    host_waits();
}

// The worker asks after each call, as torch.cuda.synchronize() asks a GPU. Nothing is wrong: a null pointer.
extern "C" __attribute__((visibility("default"), used)) const char* cuda_on_cpu_failure() {
    cuda_on_cpu::all_done();
    cuda_on_cpu::host_waits();
    return cuda_on_cpu::errors.last == cudaSuccess ? nullptr : cuda_on_cpu::errors.text;
}
#endif

// Which work on streams comes after which: by the default stream, by events, and because the host waits.
#pragma once
#pragma GCC system_header

#include "errors.h"
#include "shadow.h"

namespace cuda_on_cpu {

// How many of each stream's launches and copies a stream, an event or the host comes after; the default stream's is last.
constexpr int most_streams = 16;
struct Seen {
    unsigned long count[most_streams + 1];
    CUDA_ON_CPU_UNSEEN void add(const Seen& other) {
        for (int i = 0; i <= most_streams; ++i)
            if (other.count[i] > count[i]) count[i] = other.count[i];
    }
};

}  // namespace cuda_on_cpu

struct CUstream_st {
    unsigned long queued, needed;  // all work, and the last that may write to an output
    int line;                      // of that
    bool used, blocking;           // blocking: the default stream waits for it, and it waits for the default stream
    cuda_on_cpu::Seen seen;
};
typedef CUstream_st* cudaStream_t;

namespace cuda_on_cpu {

// The other streams are one here, the default stream.
CUDA_ON_CPU_STATE CUstream_st own_streams[most_streams], other_streams;
CUDA_ON_CPU_STATE Seen seen_by_host;

CUDA_ON_CPU_UNSEEN static bool is_own(cudaStream_t stream) { return stream >= own_streams && stream < own_streams + most_streams; }
CUDA_ON_CPU_UNSEEN static int number_of(cudaStream_t stream) { return is_own(stream) ? stream - own_streams : most_streams; }
CUDA_ON_CPU_UNSEEN static Seen& seen_by(cudaStream_t stream) {
    if (is_own(stream)) {
        if (stream->blocking) stream->seen.add(other_streams.seen);
        return stream->seen;
    }
    for (const CUstream_st& each : own_streams)
        if (each.blocking) other_streams.seen.add(each.seen);
    return other_streams.seen;
}

// A null pointer if there are too many: those are not followed.
CUDA_ON_CPU_UNSEEN static cudaStream_t new_stream(bool blocking) {
    for (CUstream_st& each : own_streams) {
        if (each.used) continue;
        each.used = true, each.blocking = blocking;
        return &each;
    }
    return nullptr;
}

CUDA_ON_CPU_UNSEEN static void queue(cudaStream_t stream, bool writes_output, int line) {
    CUstream_st& of = is_own(stream) ? *stream : other_streams;
    seen_by(stream).count[number_of(stream)] = ++of.queued;
    if (writes_output) of.needed = of.queued, of.line = line;
}

// The last launches, and the stream of the one that runs.
CUDA_ON_CPU_STATE Launched last_launches[64];
CUDA_ON_CPU_STATE cudaStream_t running_on = nullptr;

CUDA_ON_CPU_UNSEEN static void note_launch(unsigned long launch, cudaStream_t stream, int line) {
    running_on = stream;
    last_launches[launch % 64] = {launch, seen_by(stream).count[number_of(stream)], number_of(stream), line};
}

// The earlier launch, if it may run at the same time as the one that runs, or a null pointer.
CUDA_ON_CPU_UNSEEN static const Launched* launched_beside(unsigned long launch) {
    const Launched& each = last_launches[launch % 64];
    const bool over = each.count <= seen_by(running_on).count[each.stream] || each.count <= seen_by_host.count[each.stream];
    return each.launch != launch || over ? nullptr : &each;
}

CUDA_ON_CPU_UNSEEN static void host_waits() {
    for (int i = 0; i < most_streams; ++i) seen_by_host.count[i] = own_streams[i].queued;
    seen_by_host.count[most_streams] = other_streams.queued;
}

}  // namespace cuda_on_cpu

#ifndef CUDA_ON_CPU_LINKED
// The function has returned: its caller waits for the default stream alone.
extern "C" __attribute__((visibility("default"), used)) CUDA_ON_CPU_UNSEEN void cuda_on_cpu_returned() {
    using namespace cuda_on_cpu;
    for (int i = 0; i < most_streams; ++i) {
        const unsigned long needed = own_streams[i].needed;
        if (!own_streams[i].blocking && needed > seen_by_host.count[i] && needed > seen_by(nullptr).count[i])
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

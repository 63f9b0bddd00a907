// Work on streams of its own, for test_cuda_joins.py: joined before the function returns, or not.
#include <cuda_runtime.h>

__global__ void twice(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * x[i];
}

struct Side {
    cudaStream_t stream;
    cudaEvent_t event;
    explicit Side(unsigned flags = cudaStreamNonBlocking) {
        cudaStreamCreateWithFlags(&stream, flags);
        cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    }
};

extern "C" void right_event(const float* x, float* out, int n) {
    static Side side;
    twice<<<1, n, 0, side.stream>>>(x, out, n);
    cudaEventRecord(side.event, side.stream);
    cudaStreamWaitEvent(nullptr, side.event, 0);
}

extern "C" void right_chain(const float* x, float* out, int n) {
    static Side first, second, third(cudaStreamDefault);
    twice<<<1, n, 0, first.stream>>>(x, out, n);
    cudaEventRecord(first.event, first.stream);
    cudaStreamWaitEvent(second.stream, first.event, 0);
    cudaEventRecord(second.event, second.stream);
    cudaStreamWaitEvent(third.stream, second.event, 0);
}

extern "C" void right_synchronized(const float* x, float* out, int n) {
    static Side side;
    twice<<<1, n, 0, side.stream>>>(x, out, n);
    cudaStreamSynchronize(side.stream);
}

extern "C" void right_device(const float* x, float* out, int n) {
    static Side side;
    twice<<<1, n, 0, side.stream>>>(x, out, n);
    cudaDeviceSynchronize();
}

extern "C" void right_polled(const float* x, float* out, int n) {
    static Side side;
    twice<<<1, n, 0, side.stream>>>(x, out, n);
    cudaEventRecord(side.event, side.stream);
    while (cudaEventQuery(side.event) != cudaSuccess) {}
}

extern "C" void right_blocking(const float* x, float* out, int n) {
    static Side side(cudaStreamDefault);
    twice<<<1, n, 0, side.stream>>>(x, out, n);
}

extern "C" void right_without_event(const float* x, float* out, int n) {  // the calls fail, as on a GPU
    cudaEvent_t none = nullptr;
    twice<<<1, n>>>(x, out, n);
    const bool accepted = cudaEventRecord(none) == cudaSuccess || cudaStreamWaitEvent(nullptr, none, 0) == cudaSuccess;
    if (accepted || cudaEventSynchronize(none) == cudaSuccess) twice<<<1, n, 0, Side().stream>>>(x, out, n);
}

extern "C" void right_scratch(const float* x, float* out, int n) {
    static Side side;
    static float* scratch = nullptr;
    if (!scratch) cudaMalloc(&scratch, n * sizeof(float));
    cudaMemsetAsync(scratch, 0, n * sizeof(float), side.stream);  // for the next call
    twice<<<1, n>>>(x, out, n);
}

extern "C" void never(const float* x, float* out, int n) {
    static Side side;
    twice<<<1, n, 0, side.stream>>>(x, out, n);  // LINE never
}

extern "C" void event_too_early(const float* x, float* out, int n) {
    static Side side;
    cudaEventRecord(side.event, side.stream);
    twice<<<1, n, 0, side.stream>>>(x, out, n);  // LINE event_too_early
    cudaStreamWaitEvent(nullptr, side.event, 0);
}

extern "C" void another_stream(const float* x, float* out, int n) {
    static Side side, other;
    twice<<<1, n, 0, side.stream>>>(x, out, n);  // LINE another_stream
    cudaStreamSynchronize(other.stream);
    cudaStreamSynchronize(nullptr);
}

extern "C" void other_way(const float* x, float* out, int n) {
    static Side side;
    cudaEventRecord(side.event, nullptr);
    cudaStreamWaitEvent(side.stream, side.event, 0);
    cudaMemcpyAsync(out, x, n * sizeof(float), cudaMemcpyDeviceToDevice, side.stream);  // LINE other_way
}

__global__ void half_of(const float* x, float* out, int begin, int end) {
    int i = begin + threadIdx.x;
    if (i < end) out[i] = 2 * x[i];
}

static float* scratch(int n) {
    static float* memory = nullptr;
    if (!memory) cudaMalloc(&memory, n * sizeof(float));
    return memory;
}

extern "C" void right_default_between(const float* x, float* out, int n) {
    static Side first(cudaStreamDefault), second(cudaStreamDefault);
    twice<<<1, n, 0, first.stream>>>(x, scratch(n), n);
    twice<<<1, n>>>(scratch(n), out, n);  // waits for the first, and the second waits for it
    twice<<<1, n, 0, second.stream>>>(x, out, n);
}

extern "C" void right_halves(const float* x, float* out, int n) {
    static Side first(cudaStreamDefault), second(cudaStreamDefault);
    half_of<<<1, n, 0, first.stream>>>(x, out, 0, n / 2);
    half_of<<<1, n, 0, second.stream>>>(x, out, n / 2, n);
}

extern "C" void right_copy_between(const float* x, float* out, int n) {
    static Side side(cudaStreamDefault), other;
    float last;
    twice<<<1, n, 0, side.stream>>>(x, scratch(n), n);
    cudaMemcpy(&last, scratch(n), sizeof last, cudaMemcpyDeviceToHost);
    twice<<<1, n, 0, other.stream>>>(scratch(n), out, n);
    cudaStreamSynchronize(other.stream);
}

extern "C" void right_async_copy_between(const float* x, float* out, int n) {
    static Side side, other;
    float last;
    twice<<<1, n, 0, side.stream>>>(x, scratch(n), n);
    cudaMemcpyAsync(&last, scratch(n), sizeof last, cudaMemcpyDeviceToHost, side.stream);  // to memory that is not pinned
    twice<<<1, n, 0, other.stream>>>(scratch(n), out, n);
    cudaStreamSynchronize(other.stream);
}

extern "C" void right_memset_between(const float* x, float* out, int n) {
    static Side first(cudaStreamDefault), second(cudaStreamDefault);
    twice<<<1, n, 0, first.stream>>>(x, scratch(n), n);
    cudaMemset(out, 0, n * sizeof(float));  // on the default stream
    twice<<<1, n, 0, second.stream>>>(scratch(n), out, n);
}

extern "C" void beside_reads(const float* x, float* out, int n) {
    static Side first(cudaStreamDefault), second(cudaStreamDefault);
    twice<<<1, n, 0, first.stream>>>(x, scratch(n), n);  // LINE beside_reads
    twice<<<1, n, 0, second.stream>>>(scratch(n), out, n);
}

extern "C" void beside_default(const float* x, float* out, int n) {
    static Side side;
    twice<<<1, n>>>(x, scratch(n), n);  // LINE beside_default
    twice<<<1, n, 0, side.stream>>>(scratch(n), out, n);
    cudaStreamSynchronize(side.stream);
}

extern "C" void beside_overwrites(const float* x, float* out, int n) {
    static Side side;
    twice<<<1, n, 0, side.stream>>>(scratch(n), out, n);  // LINE beside_overwrites
    twice<<<1, n>>>(x, scratch(n), n);
    cudaStreamSynchronize(side.stream);
}

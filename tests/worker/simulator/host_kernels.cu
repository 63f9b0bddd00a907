// Launches whose host code shares memory with them: the right ones, then the wrong ones. See test_cuda_host.py.
#include <cstdlib>
#include <memory>
#include <vector>

__global__ void scale(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * x[i];
}
struct Pair {
    float *x, *out;
};
__global__ void scale_pair(Pair pair, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) pair.out[i] = 2 * pair.x[i];
}
__managed__ int counter;
__global__ void count() { atomicAdd(&counter, 1); }
float table[64];
__device__ float of_gpu[64];

// A vector's values go to the GPU and come back; memory of the host is only copied.
extern "C" float right_copies(float*, float* out, int n) {
    std::vector<float> values(n, 3.0f);
    float* x;
    cudaMalloc(&x, n * sizeof(float));
    cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    scale<<<1, n>>>(x, out, n);
    float* back = (float*)std::malloc(n * sizeof(float));
    cudaMemcpy(back, out, n * sizeof(float), cudaMemcpyDeviceToHost);
    float first = back[0];
    std::free(back);
    cudaFree(x);
    return first;
}

// The source of a copy that has not ended may be read.
extern "C" float right_reads_a_source(float*, float* out, int n) {
    float *pinned, *x;
    cudaMallocHost(&pinned, n * sizeof(float));
    cudaMalloc(&x, n * sizeof(float));
    for (int i = 0; i < n; ++i) pinned[i] = i;
    cudaMemcpyAsync(x, pinned, n * sizeof(float), cudaMemcpyHostToDevice);
    scale<<<1, n>>>(x, out, n);
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += pinned[i];
    cudaDeviceSynchronize();
    cudaFree(x);
    cudaFreeHost(pinned);
    return sum;
}

// So may what a kernel only reads.
extern "C" float right_reads_an_input(float*, float* out, int n) {
    float* x;
    cudaMallocManaged(&x, n * sizeof(float));
    for (int i = 0; i < n; ++i) x[i] = i;
    scale<<<1, n>>>(x, out, n);
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += x[i];
    cudaDeviceSynchronize();
    cudaFree(x);
    return sum;
}

extern "C" float right_registered(float*, float* out, int n) {
    float* x = new float[n];
    for (int i = 0; i < n; ++i) x[i] = i;
    cudaHostRegister(x, n * sizeof(float), cudaHostRegisterDefault);
    scale<<<1, n>>>(x, out, n);
    cudaDeviceSynchronize();
    x[0] = 5;
    cudaHostUnregister(x);
    delete[] x;
    return 0;
}

extern "C" float right_counter(float*, float*, int) {
    count<<<2, 32>>>();
    cudaDeviceSynchronize();
    return counter;
}

extern "C" float reads_an_output(float* x, float*, int n) {
    float* out;
    cudaMallocManaged(&out, n * sizeof(float));
    scale<<<1, n>>>(x, out, n);
    return out[0];  // LINE reads_an_output
}

extern "C" float reads_an_output_of_a_struct(float* x, float*, int n) {
    float* out;
    cudaHostAlloc(&out, n * sizeof(float), cudaHostAllocDefault);
    scale_pair<<<1, n>>>(Pair{x, out}, n);
    return out[0];  // LINE reads_an_output_of_a_struct
}

extern "C" float reads_a_counter(float*, float*, int) {
    count<<<2, 32>>>();
    return counter;  // LINE reads_a_counter
}

extern "C" float reads_a_destination(float* x, float*, int n) {
    float* back;
    cudaMallocHost(&back, n * sizeof(float));
    cudaMemcpyAsync(back, x, n * sizeof(float), cudaMemcpyDeviceToHost);
    return back[0];  // LINE reads_a_destination
}

extern "C" float writes_a_source(float* x, float*, int n) {
    float* pinned;
    cudaMallocHost(&pinned, n * sizeof(float));
    pinned[0] = 1;
    cudaMemcpyAsync(x, pinned, n * sizeof(float), cudaMemcpyHostToDevice);
    pinned[0] = 2;  // LINE writes_a_source
    return 0;
}

extern "C" float writes_an_input(float*, float* out, int n) {
    float* x;
    cudaMallocManaged(&x, n * sizeof(float));
    x[0] = 1;
    scale<<<1, n>>>(x, out, n);
    x[0] = 2;  // LINE writes_an_input
    return 0;
}

extern "C" float from_malloc(float*, float* out, int n) {
    float* x = (float*)malloc(n * sizeof(float));
    scale<<<1, n>>>(x, out, n);  // LINE from_malloc
    free(x);
    return 0;
}
extern "C" float from_calloc(float*, float* out, int n) {
    float* x = static_cast<float*>(std::calloc(n, sizeof(float)));
    scale<<<1, n>>>(x, out, n);  // LINE from_calloc
    std::free(x);
    return 0;
}
extern "C" float from_new(float*, float* out, int n) {
    float* x = new float[n]();
    scale<<<1, n>>>(x + 1, out, n - 1);  // LINE from_new
    delete[] x;
    return 0;
}
extern "C" float from_unique(float*, float* out, int n) {
    auto x = std::make_unique<float[]>(n);
    scale<<<1, n>>>(x.get(), out, n);  // LINE from_unique
    return 0;
}
extern "C" float from_vector(float* x, float*, int n) {
    std::vector<float> out(n);
    scale<<<1, n>>>(x, out.data(), n);  // LINE from_vector
    return out[0];
}
extern "C" float from_static(float*, float* out, int n) {
    scale<<<1, n>>>(table, out, n);  // LINE from_static
    return 0;
}

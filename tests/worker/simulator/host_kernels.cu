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

// A kernel chosen from an array gets a struct in managed memory, with pointers into rows with gaps and a variable.
struct Rows {
    const float* x;
    float* out;
    size_t pitch;
};
__global__ void scale_rows(const Rows* rows, int n) {
    int i = threadIdx.x, row = blockIdx.x;
    if (i < n) rows->out[row * n + i] = 2 * rows->x[row * rows->pitch / sizeof(float) + i];
}
__global__ void copy_rows(const Rows* rows, int n) {
    if (threadIdx.x < n) rows->out[blockIdx.x * n + threadIdx.x] = 0;
}
struct Plan {
    void (*kernels[2])(const Rows*, int);
};
extern "C" float right_rows(float* x, float* out, int n) {
    const Plan plan{{copy_rows, scale_rows}};
    Rows* rows;
    float *symbol, *pitched;
    size_t pitch;
    cudaGetSymbolAddress((void**)&symbol, of_gpu);
    cudaMallocPitch(&pitched, &pitch, n / 2 * sizeof(float), 2);
    cudaMemset2D(pitched, pitch, 0, n / 2 * sizeof(float), 2);
    cudaMemcpy2D(pitched, pitch, x, n / 2 * sizeof(float), n / 2 * sizeof(float), 2, cudaMemcpyDeviceToDevice);
    cudaMallocManaged(&rows, sizeof(Rows));
    *rows = {pitched, symbol, pitch};
    int threads;
    cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, 0);
    plan.kernels[1]<<<2, threads / 32>>>(rows, n / 2);
    cudaDeviceSynchronize();
    *rows = {x, out, n / 2 * sizeof(float)};  // memory that is known by the pointers in it alone
    plan.kernels[1]<<<2, threads / 32>>>(rows, n / 2);
    cudaMemcpyFromSymbol(out, of_gpu, n * sizeof(float));
    cudaFree(rows);
    cudaFree(pitched);
    return out[n - 1];
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

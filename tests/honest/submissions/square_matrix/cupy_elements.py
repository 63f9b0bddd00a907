# honest: CuPy's RawKernel on arrays that share torch's memory
# exercise: square_matrix
# runs: gpu
# gates: passes
# needs: cupy
import cupy as cp
import torch

_square = cp.RawKernel(
    """
    extern "C" __global__
    void square(const float* x, float* out, const long long n)
    {
        const long long i = 4 * ((long long)blockIdx.x * blockDim.x + threadIdx.x);
        if (i + 4 <= n) {
            const float4 v = *reinterpret_cast<const float4*>(x + i);
            *reinterpret_cast<float4*>(out + i) = make_float4(v.x * v.x, v.y * v.y, v.z * v.z, v.w * v.w);
        } else {
            for (long long k = i; k < n; ++k) out[k] = x[k] * x[k];
        }
    }
    """,
    "square",
    options=("--use_fast_math",),
)


def square_matrix(x, out):
    n = x.numel()
    with cp.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
        _square((-(-n // 1024),), (256,), (cp.asarray(x), cp.asarray(out), n))

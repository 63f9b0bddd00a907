# right: the vectorised kernel of Simon Boehm's article, and tiles of 32 for other sizes
# runs: anywhere

import ctypes
from functools import lru_cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define CEIL_DIV(M, N) (((M) + (N) - 1) / (N))
template <const int BM, const int BN, const int BK, const int TM, const int TN>
__global__ void __launch_bounds__((BM * BN) / (TM * TN), 1)
sgemmVectorize(int M, int N, int K, const float *A, const float *B, float *C) {
  const uint cRow = blockIdx.y;
  const uint cCol = blockIdx.x;
  const int threadCol = threadIdx.x % (BN / TN);
  const int threadRow = threadIdx.x / (BN / TN);
  __shared__ float As[BM * BK];
  __shared__ float Bs[BK * BN];
  A += cRow * BM * K;
  B += cCol * BN;
  C += cRow * BM * N + cCol * BN;
  const uint innerRowA = threadIdx.x / (BK / 4);
  const uint innerColA = threadIdx.x % (BK / 4);
  const uint innerRowB = threadIdx.x / (BN / 4);
  const uint innerColB = threadIdx.x % (BN / 4);
  float threadResults[TM * TN] = {0.0};
  float regM[TM] = {0.0};
  float regN[TN] = {0.0};
  for (uint bkIdx = 0; bkIdx < K; bkIdx += BK) {
    float4 tmp = reinterpret_cast<const float4 *>(&A[innerRowA * K + innerColA * 4])[0];
    As[(innerColA * 4 + 0) * BM + innerRowA] = tmp.x;
    As[(innerColA * 4 + 1) * BM + innerRowA] = tmp.y;
    As[(innerColA * 4 + 2) * BM + innerRowA] = tmp.z;
    As[(innerColA * 4 + 3) * BM + innerRowA] = tmp.w;
    reinterpret_cast<float4 *>(&Bs[innerRowB * BN + innerColB * 4])[0] =
        reinterpret_cast<const float4 *>(&B[innerRowB * N + innerColB * 4])[0];
    __syncthreads();
    A += BK;
    B += BK * N;
    for (uint dotIdx = 0; dotIdx < BK; ++dotIdx) {
      for (uint i = 0; i < TM; ++i) regM[i] = As[dotIdx * BM + threadRow * TM + i];
      for (uint i = 0; i < TN; ++i) regN[i] = Bs[dotIdx * BN + threadCol * TN + i];
      for (uint resIdxM = 0; resIdxM < TM; ++resIdxM)
        for (uint resIdxN = 0; resIdxN < TN; ++resIdxN)
          threadResults[resIdxM * TN + resIdxN] += regM[resIdxM] * regN[resIdxN];
    }
    __syncthreads();
  }
  for (uint resIdxM = 0; resIdxM < TM; resIdxM += 1)
    for (uint resIdxN = 0; resIdxN < TN; resIdxN += 4) {
      float4 tmp = reinterpret_cast<float4 *>(&C[(threadRow * TM + resIdxM) * N + threadCol * TN + resIdxN])[0];
      tmp.x = threadResults[resIdxM * TN + resIdxN];
      tmp.y = threadResults[resIdxM * TN + resIdxN + 1];
      tmp.z = threadResults[resIdxM * TN + resIdxN + 2];
      tmp.w = threadResults[resIdxM * TN + resIdxN + 3];
      reinterpret_cast<float4 *>(&C[(threadRow * TM + resIdxM) * N + threadCol * TN + resIdxN])[0] = tmp;
    }
}
template <const uint BLOCKSIZE>
__global__ void sgemm_shared(int M, int N, int K, const float *A, const float *B, float *C) {
  __shared__ float As[BLOCKSIZE * BLOCKSIZE];
  __shared__ float Bs[BLOCKSIZE * BLOCKSIZE];
  const uint threadCol = threadIdx.x % BLOCKSIZE;
  const uint threadRow = threadIdx.x / BLOCKSIZE;
  const uint row = blockIdx.y * BLOCKSIZE + threadRow, col = blockIdx.x * BLOCKSIZE + threadCol;
  float tmp = 0.0;
  for (int bkIdx = 0; bkIdx < K; bkIdx += BLOCKSIZE) {
    As[threadRow * BLOCKSIZE + threadCol] = (row < M && bkIdx + threadCol < K) ? A[row * K + bkIdx + threadCol] : 0;
    Bs[threadRow * BLOCKSIZE + threadCol] = (bkIdx + threadRow < K && col < N) ? B[(bkIdx + threadRow) * N + col] : 0;
    __syncthreads();
    for (int dotIdx = 0; dotIdx < BLOCKSIZE; ++dotIdx)
      tmp += As[threadRow * BLOCKSIZE + dotIdx] * Bs[dotIdx * BLOCKSIZE + threadCol];
    __syncthreads();
  }
  if (row < M && col < N) C[row * N + col] = tmp;
}
extern "C" int gemm(const float* a, const float* b, float* out, int M, int N, int K) {
  if (M % 64 == 0 && N % 64 == 0 && K % 8 == 0) {
    sgemmVectorize<64, 64, 8, 4, 8><<<dim3(CEIL_DIV(N, 64), CEIL_DIV(M, 64)), 128>>>(M, N, K, a, b, out);
  } else {
    dim3 gridDim(CEIL_DIV(N, 32), CEIL_DIV(M, 32));
    dim3 blockDim(32 * 32);
    cudaFuncSetAttribute(
        sgemm_shared<32>, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
    sgemm_shared<32><<<gridDim, blockDim>>>(M, N, K, a, b, out);
  }
  return cudaGetLastError();
}
"""


@lru_cache(maxsize=1)
def _lib():
    lib = ctypes.CDLL(
        load_inline(
            "matmul_x",
            cpp_sources="",
            cuda_sources=cuda_source,
            no_implicit_headers=True,
            is_python_module=False,
            extra_cuda_cflags=["-O3", "-lineinfo"],
        )
    )
    lib.gemm.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int] * 3
    lib.gemm.restype = ctypes.c_int
    return lib


def matmul_tiled(a, b, out):
    (m, k), (_, n) = a.shape, b.shape
    status = _lib().gemm(a.data_ptr(), b.data_ptr(), out.data_ptr(), m, n, k)
    assert status == 0, f"CUDA error {status}"

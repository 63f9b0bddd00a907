# honest: NVRTC and the driver through cuda.bindings, launched by cuLaunchKernel
# exercise: square_matrix
# runs: gpu
# gates: passes
# needs: cuda.bindings.nvrtc
import ctypes
from functools import cache

import torch
from cuda.bindings import driver, nvrtc

SOURCE = rb"""
extern "C" __global__ void square(const float4* __restrict__ x, float4* __restrict__ out, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (4 * i + 3 < n) {
        float4 v = x[i];
        out[i] = make_float4(v.x * v.x, v.y * v.y, v.z * v.z, v.w * v.w);
    } else {
        for (unsigned long long k = 4 * i; k < n; ++k) {
            float v = ((const float*)x)[k];
            ((float*)out)[k] = v * v;
        }
    }
}
"""


def checked(result):
    status, *values = result
    if int(status) != 0:
        raise RuntimeError(f"{type(status).__name__} {status.name}")
    return values[0] if len(values) == 1 else values


@cache
def kernel():
    major, minor = torch.cuda.get_device_capability()
    program = checked(nvrtc.nvrtcCreateProgram(SOURCE, b"square.cu", 0, [], []))
    options = [f"--gpu-architecture=sm_{major}{minor}".encode()]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(status) != 0:
        log = b" " * checked(nvrtc.nvrtcGetProgramLogSize(program))
        checked(nvrtc.nvrtcGetProgramLog(program, log))
        raise RuntimeError(log.decode())
    cubin = b" " * checked(nvrtc.nvrtcGetCUBINSize(program))
    checked(nvrtc.nvrtcGetCUBIN(program, cubin))
    module = checked(driver.cuModuleLoadData(cubin))
    return module, checked(driver.cuModuleGetFunction(module, b"square"))


def square_matrix(x, out):
    n = x.numel()
    _, function = kernel()
    values = (x.data_ptr(), out.data_ptr(), n)
    types = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulonglong)
    stream = torch.cuda.current_stream().cuda_stream
    checked(driver.cuLaunchKernel(function, (n + 1023) // 1024, 1, 1, 256, 1, 1, 0, stream, (values, types), 0))

"""The rewriting of declarations in shared memory."""

from __future__ import annotations

import pytest

from grader.worker.simulator.cuda_source import translate


@pytest.mark.parametrize(
    ("source", "of_file"),
    [
        ("__shared__ float s[4];", True),
        ("namespace a::b { __shared__ float s[4]; }", True),
        ('extern "C" { namespace { static __shared__ float s; } }', True),
        ("__global__ void k(int n) {} __shared__ int s;", True),
        ("__global__ void k(int n) { __shared__ int s; }", False),
        ("namespace { __device__ void f() { { __shared__ int s; } } }", False),
        ("KERNEL(k, __shared__ float s[4]; s[0] = 1)", False),
        ("#define TILE \\\n  __shared__ float s[4];\n", False),
        ("#define TILE 4\n__shared__ float s[TILE];\n", True),
    ],
)
def test_a_shared_variable_of_a_file_is_told_from_a_kernels(source: str, of_file: bool) -> None:
    """The text of a macro and its arguments belong to the kernel that uses it."""
    assert ("SharedVariable" in translate(source)) == of_file


def test_shared_memory_in_a_kernel_with_launch_bounds_and_c_linkage() -> None:
    """`extern "C"` declares the kernel, not the shared memory in it."""
    translated = translate('extern "C" __global__ void __launch_bounds__(64) k() { __shared__ float tile[64]; }')
    assert translated.startswith('extern "C" __global__ void __launch_bounds__(64) k() { ::cuda_on_cpu::keep_bounds')


def test_shared_declarations_name_all_their_variables() -> None:
    """Every declared object is poisoned for each block, whatever its type looks like."""
    for declaration, names in [
        ("__shared__ float a[2][3], b;", "a, b"),
        ("__shared__ Pair<int, float> p;", "p"),
        ("__shared__ volatile unsigned int n;", "n"),
        ("__shared__ __align__(16) unsigned char bytes[N * sizeof(T)];", "bytes"),
        ("static __shared__ T row[f<2>(3)];", "row"),
    ]:
        assert ", ".join(f'::cuda_on_cpu::shared({name}, "{name}")' for name in names.split(", ")) in translate(
            declaration
        )
        assert translate(declaration).count("static") == 2 + len(names.split(", "))

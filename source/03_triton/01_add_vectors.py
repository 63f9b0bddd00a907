# %% [markdown]
# # Add two vectors

# %% nbgrader={"grade_id": "vector_add", "solution": true}
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    ### BEGIN SOLUTION
    block_start = tl.program_id(0) * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)  # reads n
    y = tl.load(y_ptr + offsets, mask=mask)  # reads n
    tl.store(out_ptr + offsets, x + y, mask=mask)  # writes n
    ### END SOLUTION


def vector_add(x, y, out):
    ### BEGIN SOLUTION
    n = x.numel()
    block_size = 1024
    grid = (triton.cdiv(n, block_size),)
    add_kernel[grid](x, y, out, n, BLOCK_SIZE=block_size)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-vector_add", "grade": true, "locked": true, "points": 5}
check(vector_add)

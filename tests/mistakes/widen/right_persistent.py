# right: a persistent grid, sized by the driver's properties at import
# runs: anywhere
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()
SMS = triton.runtime.driver.active.utils.get_device_properties(DEVICE.index)["multiprocessor_count"]


@triton.jit
def kernel(x_ptr, gain_ptr, out_ptr, xs, os, rows, columns, BLOCK: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        gain = tl.load(gain_ptr + row)
        x_row = x_ptr + tl.multiple_of(row * xs, 4)
        o_row = out_ptr + tl.multiple_of(row * os, 4)
        for at in tl.range(0, columns, BLOCK, num_stages=2):
            c = at + tl.arange(0, BLOCK)
            m = tl.max_constancy(c < columns, 4)
            tl.store(o_row + c, tl.load(x_row + c, mask=m) * gain, mask=m)


def widen(x, gain, out):
    rows, columns = x.shape
    kernel[(min(4 * SMS, rows),)](x, gain, out, x.stride(0), out.stride(0), rows, columns, BLOCK=1024)

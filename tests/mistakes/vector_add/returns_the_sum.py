# mistake: the sum is returned, and out is not written
# says: the result must be written to `out`
# runs: anywhere
def vector_add(x, y, out):
    out = x + y
    return out

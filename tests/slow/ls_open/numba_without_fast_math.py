# slow: typed to float32 and in Numba, but with accurate sines and cosines for each pair
# cause: slow sines
import math

from numba import cuda, float32, int32, void

vector = float32[::1]


@cuda.jit(void(vector, vector, vector, vector))
def brute_force(times, values, omegas, powers):
    me = int32(cuda.grid(1))
    if me >= int32(omegas.size):
        return
    omega = omegas[me]
    c_sum = s_sum = cc_sum = cs_sum = float32(0.0)
    for k in range(int32(times.size)):
        phase = omega * times[k]
        c = math.cos(phase)
        s = math.sin(phase)
        c_sum += values[k] * c
        s_sum += values[k] * s
        cc_sum += c * c
        cs_sum += c * s
    ss_sum = float32(int32(times.size)) - cc_sum
    angle = float32(0.5) * math.atan2(float32(2.0) * cs_sum, cc_sum - ss_sum)
    c = math.cos(angle)
    s = math.sin(angle)
    mixed = float32(2.0) * c * s * cs_sum
    along = c * c_sum + s * s_sum
    across = c * s_sum - s * c_sum
    first = along * along / (c * c * cc_sum + mixed + s * s * ss_sum)
    second = across * across / (c * c * ss_sum - mixed + s * s * cc_sum)
    powers[me] = float32(0.5) * (first + second)


def ls_open(t, y, freqs, out):
    brute_force[(freqs.size + 127) // 128, 128](t, y, freqs, out)

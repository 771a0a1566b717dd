# %% [markdown]
# # 14. Arrays: compile NumPy code
#
# You will take a function written for NumPy, run it unchanged on compiled arrays, observe that ten
# operations are fused into one kernel, and run it as another machine would. Prerequisites:
# tutorial 1. Time: ten minutes.

# %%
import timeit

import numpy as np

import tecomp.array as xp


def gelu(np, x):
    return 0.5 * x * (1 + np.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


a = np.random.default_rng(0).random((1000, 1000), dtype=np.float32)
x = xp.asarray(a)
y = gelu(xp, x)
print(y.shape, y.dtype, y.device)
print(xp.statistics.counters)

# %% [markdown]
# `tecomp.array` implements the array API standard: the names are those of NumPy. The shape and
# dtype of `y` are known, but nothing has been computed, and no kernel has been compiled. The
# operations were recorded.
#
# **Predict.** `gelu` has nine element-wise operations, and the next cell requests the mean of
# their result. How many kernels run, and how often are a million elements written to memory?

# %%
mean = xp.mean(y)
print(float(mean))
print(xp.statistics.counters)

np.testing.assert_allclose(float(mean), gelu(np, a).mean(dtype=np.float64), rtol=1e-5)

# %% [markdown]
# Two kernels. `y` is still referenced and may be read later, so one kernel computes all nine
# operations and stores `y`, and the other computes its mean. Reading an element of `y` now needs
# no kernel. Unreferenced arrays are not stored: the mean of a new `gelu` is one kernel, which
# writes one element, and some partial sums:

# %%
print(float(y[3, 5]), xp.statistics.counters)
assert xp.statistics.counters.called == 2

shown = xp.explain(xp.mean(gelu(xp, x)))
print(shown.report)

# %% [markdown]
# `explain` describes the kernels without running them. `shown.function` contains the recorded
# operations, `shown.loops` the loops of each kernel, and `shown.schedules` the schedule of each
# kernel as a function that you can copy and modify.
#
# The first call compiles, later calls reuse the kernel. NumPy writes a whole array for each
# operation:

# %%
def milliseconds(f):
    return min(timeit.repeat(f, number=1, repeat=9)) * 1e3


print(f"NumPy   {milliseconds(lambda: gelu(np, a).mean()):6.2f} ms")
print(f"tecomp  {milliseconds(lambda: float(xp.mean(gelu(xp, x)))):6.2f} ms")

# %% [markdown]
# A device is a machine with a target description. `stick128` has 32 cores with scratchpads, and
# stores tensors in sticks of 128 bytes. The program runs on the host as it would on the device:
# arrays are packed to device memory, computed in scratchpads, and unpacked. The report contains
# the modelled cost:

# %%
z = xp.asarray(a[:256, :200].astype(np.float16), device="stick128")
w = xp.tanh(z) * z
print(xp.explain(w).report)

expected = np.tanh(a[:256, :200]) * a[:256, :200]
np.testing.assert_allclose(np.asarray(w.to_device("cpu")), expected, atol=1e-2)

# %% [markdown]
# The figure shows the layout of `z` in device memory. Sticks hold 64 elements of two bytes, and
# 200 columns are three full sticks and a partial one. (For `w` the figure would show the pending
# operations if its elements had not been read.)

# %%
z.picture()

# %% [markdown]
# Operations are checked when they are recorded, not when they run later. The next cell causes an
# error on purpose, with operands on two devices:

# %%
try:
    z + xp.asarray(a[:256, :200].astype(np.float16))
except ValueError as error:
    print(error.message)

# %% [markdown]
# Views follow the rules of NumPy: `x[1:]` and `x.T` share their elements with `x`, and an
# assignment to one is visible in the others. Operations that were recorded before the assignment
# use the old elements:

# %%
v = xp.arange(6.0)
first, later = v[:3], v * 10
first[0] = 99.0
print(float(v[0]), float(later[0]))

assert (float(v[0]), float(later[0])) == (99.0, 0.0)


# %% [markdown]
# **Exercise.** Compute the root mean square difference of two arrays, in one kernel.

# %%
def answer(xp, x, y):
    return xp.sum(x - y)


def check(answer):
    a, b = np.random.default_rng(1).random((2, 300, 400), dtype=np.float32)
    distance = answer(xp, xp.asarray(a), xp.asarray(b))
    assert abs(float(distance) - np.sqrt(np.mean((a - b) ** 2))) < 1e-5
    assert len(xp.explain(answer(xp, xp.asarray(a), xp.asarray(b))).schedules) == 1


# check(answer)

# %% [markdown]
# # 14. Arrays: NumPy code, compiled
#
# You will take a function that was written for NumPy, run it unchanged on arrays that are
# compiled, see that ten operations became one kernel, and run it as another machine would. You
# need: tutorial 1. Time: ten minutes.

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
# `tecomp.array` is a namespace of the array-API standard: the names are NumPy's. Shape and type
# of `y` are known, but nothing was computed, and no kernel was compiled. The operations were
# recorded.
#
# **Predict.** `gelu` has nine operations on the elements, and then their mean is asked for. How
# many kernels will run, and how often is a million elements written to memory?

# %%
mean = xp.mean(y)
print(float(mean))
print(xp.statistics.counters)

np.testing.assert_allclose(float(mean), gelu(np, a).mean(dtype=np.float64), rtol=1e-5)

# %% [markdown]
# Two kernels. `y` is still held and may be asked for, so one kernel computes it, all nine
# operations at once, and the other takes its mean. An element of `y` is there now without another
# kernel. What nobody holds is not stored at all: the mean of a new `gelu` is one kernel, which
# writes one number, and some sums on the way:

# %%
print(float(y[3, 5]), xp.statistics.counters)
assert xp.statistics.counters.called == 2

shown = xp.explain(xp.mean(gelu(xp, x)))
print(shown.report)

# %% [markdown]
# `explain` tells what would run, and runs nothing. `shown.function` has the operations as they
# were recorded, `shown.loops` the loops of each kernel, and `shown.schedules` for each kernel a
# function that could be taken over and changed.
#
# The first call compiles, later ones find the kernel. NumPy writes a whole array for each
# operation:

# %%
def milliseconds(f):
    return min(timeit.repeat(f, number=1, repeat=9)) * 1e3


print(f"NumPy   {milliseconds(lambda: gelu(np, a).mean()):6.2f} ms")
print(f"tecomp  {milliseconds(lambda: float(xp.mean(gelu(xp, x)))):6.2f} ms")

# %% [markdown]
# A device is a machine that a target describes. `stick128` has 32 cores with scratchpads, and
# keeps tensors in sticks of 128 bytes. The program runs here as it would there: elements are
# brought to its memory in that form, computed with in scratchpads, and brought back. The report
# says what it would cost there:

# %%
z = xp.asarray(a[:256, :200].astype(np.float16), device="stick128")
w = xp.tanh(z) * z
print(xp.explain(w).report)

expected = np.tanh(a[:256, :200]) * a[:256, :200]
np.testing.assert_allclose(np.asarray(w.to_device("cpu")), expected, atol=1e-2)

# %% [markdown]
# A picture: how `z` lies in the memory of the device. Sticks hold 64 numbers of two bytes, and
# 200 columns are three sticks and a part of a fourth. (`w` would show the operations that are to
# come, if nobody had asked for its elements.)

# %%
z.picture()

# %% [markdown]
# An operation is checked where it is written, not where it runs later. One mistake on purpose,
# operands on two devices:

# %%
try:
    z + xp.asarray(a[:256, :200].astype(np.float16))
except ValueError as error:
    print(error.message)

# %% [markdown]
# Arrays are views where NumPy's are: `x[1:]` and `x.T` share their elements with `x`, and what is
# assigned to one is seen in the other. What was recorded before keeps the old elements:

# %%
v = xp.arange(6.0)
first, later = v[:3], v * 10
first[0] = 99.0
print(float(v[0]), float(later[0]))

assert (float(v[0]), float(later[0])) == (99.0, 0.0)


# %% [markdown]
# **Exercise.** Write the root of the mean of the squared differences of two arrays. It has to be
# one kernel.

# %%
def answer(xp, x, y):
    return xp.sum(x - y)


def check(answer):
    a, b = np.random.default_rng(1).random((2, 300, 400), dtype=np.float32)
    distance = answer(xp, xp.asarray(a), xp.asarray(b))
    assert abs(float(distance) - np.sqrt(np.mean((a - b) ** 2))) < 1e-5
    assert len(xp.explain(answer(xp, xp.asarray(a), xp.asarray(b))).schedules) == 1


# check(answer)

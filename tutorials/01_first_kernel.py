# %% [markdown]
# # 1. A first kernel
#
# You will define a tensor expression, compile it to native code, call it on NumPy arrays and read
# its cost report. Prerequisites: NumPy. Time: ten minutes.

# %%
import numpy as np

import tecomp
from tecomp import te

A = te.placeholder((1000,), name="A")
B = te.placeholder((1000,), name="B")
C = te.compute((1000,), lambda i: A[i] * 2.0 + B[i], name="C")
print(C.shape, C.dtype)

# %% [markdown]
# Nothing is computed yet. `A` and `B` are placeholders for the arrays of a later call. `C` is a
# definition: it gives the element at each index `i`. The lambda was called once, with a symbolic
# index.
#
# A schedule determines *when* the elements are computed. The default schedule is a plain loop:

# %%
s = te.create_schedule(C)
print(tecomp.lower(s, [A, B, C]))

# %% [markdown]
# **Predict.** The loop is compiled for your processor and called on three arrays. The result is
# written to the third array. What is the value of `c[10]` if `a` is 0, 1, 2 ... and all elements
# of `b` are 0.5?

# %%
kernel = tecomp.build(s, [A, B, C], target="cpu", name="axpy")

a = np.arange(1000, dtype=np.float32)
b = np.full(1000, 0.5, np.float32)
c = np.empty(1000, np.float32)
kernel(a, b, c)
print(c[10])

np.testing.assert_array_equal(c, a * 2 + b)

# %% [markdown]
# A kernel is displayed as a figure: its loops, their bodies and the buffers.

# %%
kernel

# %% [markdown]
# What does a call cost? The report is derived from the loops without running them: the bytes read
# and written, the operations, and a lower bound of the cycles.

# %%
report = kernel.report()
print(report)

assert report.of("global", "read").bytes == 2 * 1000 * 4
assert report.of("global", "write").bytes == 1000 * 4

# %% [markdown]
# A kernel checks its arguments before it runs. An error states the location, the problem and the
# remedy. If it is not caught, it also shows your source line. The next cell causes an error on
# purpose, with an array of the wrong dtype:

# %%
try:
    kernel(a, np.arange(1000.0), c)
except tecomp.CallError as error:
    print(error.message)

# %% [markdown]
# `tecomp.compile` compiles several definitions to a program, without a schedule. Its figure shows
# the memory plan; time runs downwards. `H` is an intermediate value. One kernel computes both
# tensors, so `H` needs no memory. (In a script, `program.save("axpy.svg")` writes the figure to a
# file.)

# %%
H = te.compute((1000,), lambda i: A[i] * A[i], name="H")
D = te.compute((1000,), lambda i: H[i] + B[i], name="D")
program = tecomp.compile(D, [A, B])

np.testing.assert_array_equal(program(a, b), a * a + b)
program.picture()


# %% [markdown]
# **Exercise.** Define the outer product of two vectors: a matrix with `a[i] * b[j]` at `(i, j)`.
# Change the body of `answer`, and remove the `#` in the last line. The assertion is the
# specification. A solution is in `solutions/`.

# %%
def answer(A, B):
    return te.compute((A.shape[0], B.shape[0]), lambda i, j: A[i], name="outer")


def check(answer):
    A, B = te.placeholder((30,), name="A"), te.placeholder((20,), name="B")
    a, b = np.arange(30, dtype=np.float32), np.arange(20, dtype=np.float32)
    np.testing.assert_array_equal(tecomp.compile(answer(A, B), [A, B])(a, b), np.outer(a, b))


# check(answer)

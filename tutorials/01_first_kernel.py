# %% [markdown]
# # 1. A first kernel
#
# You will write down a formula on arrays, compile it to native code, call it on arrays of NumPy,
# and ask what it costs. You need: NumPy. Time: ten minutes.

# %%
import numpy as np

import tecomp
from tecomp import te

A = te.placeholder((1000,), name="A")
B = te.placeholder((1000,), name="B")
C = te.compute((1000,), lambda i: A[i] * 2.0 + B[i], name="C")
print(C.shape, C.dtype)

# %% [markdown]
# Nothing was computed. `A` and `B` stand for arrays that will come with a call, and `C` is a
# definition: for each index `i`, what its element is. The function was called once, with a
# symbol.
#
# *When* the elements are computed is a schedule. The first one is the obvious loop:

# %%
s = te.create_schedule(C)
print(tecomp.lower(s, [A, B, C]))

# %% [markdown]
# **Predict.** The loops are compiled for your processor, and called on three arrays. The result
# is written into the third. What will `c[10]` be, if `a` is 0, 1, 2 ... and all of `b` is 0.5?

# %%
kernel = tecomp.build(s, [A, B, C], target="cpu", name="axpy")

a = np.arange(1000, dtype=np.float32)
b = np.full(1000, 0.5, np.float32)
c = np.empty(1000, np.float32)
kernel(a, b, c)
print(c[10])

np.testing.assert_array_equal(c, a * 2 + b)

# %% [markdown]
# A kernel shows itself as a picture: its loops, what is inside of them, and the buffers.

# %%
kernel

# %% [markdown]
# What does a call cost? The answer is counted from the loops, nothing is run: the bytes that are
# read and written, the operations, and how many cycles the processor needs at least.

# %%
report = kernel.report()
print(report)

assert report.of("global", "read").bytes == 2 * 1000 * 4
assert report.of("global", "write").bytes == 1000 * 4

# %% [markdown]
# A kernel checks its arguments before it runs. An error says where, what, and what to do instead.
# Uncaught, it also shows your own line. Here is one on purpose, an array of the wrong type:

# %%
try:
    kernel(a, np.arange(1000.0), c)
except tecomp.CallError as error:
    print(error.message)

# %% [markdown]
# Another picture: `tecomp.compile` makes a program of several definitions without a schedule, and
# draws it. Time runs downwards. `H` is computed on the way, and one kernel makes both, so that `H`
# needs no memory of its own. (In a script, `program.save("axpy.svg")` writes it to a file.)

# %%
H = te.compute((1000,), lambda i: A[i] * A[i], name="H")
D = te.compute((1000,), lambda i: H[i] + B[i], name="D")
program = tecomp.compile(D, [A, B])

np.testing.assert_array_equal(program(a, b), a * a + b)
program.picture()


# %% [markdown]
# **Exercise.** Define the outer product of two vectors, a matrix with `a[i] * b[j]` at `(i, j)`.
# Change the body of `answer`, and take away the `#` of the last line. The assertion is the
# specification. One solution is in `solutions/`.

# %%
def answer(A, B):
    return te.compute((A.shape[0], B.shape[0]), lambda i, j: A[i], name="outer")


def check(answer):
    A, B = te.placeholder((30,), name="A"), te.placeholder((20,), name="B")
    a, b = np.arange(30, dtype=np.float32), np.arange(20, dtype=np.float32)
    np.testing.assert_array_equal(tecomp.compile(answer(A, B), [A, B])(a, b), np.outer(a, b))


# check(answer)

# %% [markdown]
# # 13. A transformer layer as one program
#
# You will define a transformer layer as thirty tensors, compile it to one program for two
# machines, inspect the selected layouts and their cost, and constrain them. Prerequisites:
# tutorials 6 and 10. Time: ten minutes.

# %%
import numpy as np

import tecomp
from tecomp import te, topi

tokens, width, heads, hidden = 64, 128, 4, 256
each = width // heads


def layer(dtype="float32"):
    X = te.placeholder((tokens, width), dtype, name="X")
    shapes = {
        "Wq": (width, width), "Wk": (width, width), "Wv": (width, width), "Wo": (width, width),
        "Wu": (hidden, width), "Wd": (width, hidden), "g": (width,), "b": (width,),
    }
    W = {name: te.placeholder(shape, dtype, name=name) for name, shape in shapes.items()}
    N = topi.nn.layer_norm(X, W["g"], W["b"], [1])

    def by_head(weight):
        """Compute one product for all heads, with axes (head, token, head dimension)."""
        P = topi.nn.dense(N, weight)
        return topi.transpose(topi.reshape(P, (tokens, heads, each)), [1, 0, 2])

    Q, K, V = by_head(W["Wq"]), by_head(W["Wk"]), by_head(W["Wv"])
    S = topi.nn.softmax(topi.multiply(topi.nn.batch_matmul(Q, K), each**-0.5), axis=2)
    A = topi.nn.batch_matmul(S, V, transpose_b=False)
    C = topi.reshape(topi.transpose(A, [1, 0, 2]), (tokens, width))
    R = topi.add(X, topi.nn.dense(C, W["Wo"]))
    U = topi.nn.relu(topi.nn.dense(R, W["Wu"]))
    return X, W, U, topi.add(R, topi.nn.dense(U, W["Wd"]))


X, W, U, Y = layer()
random = np.random.default_rng(0)
x = random.standard_normal(X.shape).astype(X.dtype)
weights = {
    tensor: (random.standard_normal(tensor.shape) / tensor.shape[-1] ** 0.5).astype(X.dtype)
    for tensor in W.values()
}

# %% [markdown]
# NumPy provides the expected result, in float64. This is the same layer as a function of arrays:

# %%
def expected(x, w):
    x, w = x.astype(float), {tensor.name: array.astype(float) for tensor, array in w.items()}
    n = x - x.mean(1, keepdims=True)
    n = n / np.sqrt((n * n).mean(1, keepdims=True) + 1e-5) * w["g"] + w["b"]
    q, k, v = (
        (n @ w[name].T).reshape(tokens, heads, each).transpose(1, 0, 2)
        for name in ("Wq", "Wk", "Wv")
    )
    s = np.exp(q @ k.transpose(0, 2, 1) / each**0.5)
    a = (s / s.sum(2, keepdims=True) @ v).transpose(1, 0, 2).reshape(tokens, width)
    r = x + a @ w["Wo"].T
    return r + np.maximum(r @ w["Wu"].T, 0) @ w["Wd"].T


def largest_error(y):
    return np.abs(y - expected(x, weights)).max()


print(np.abs(expected(x, weights)).max(), "is the maximum result")

# %% [markdown]
# A program is compiled for its outputs and called with its inputs. The weights are constants: they
# are packed once, in the selected layout. Reshapes and transpositions copy nothing; they only
# change indices.
#
# **Predict.** How many kernels does the program have on a CPU? The norm, four products before the
# attention, the attention, three products after it?

# %%
cpu = tecomp.compile(Y, [X], constants=weights)
print(f"error {largest_error(cpu(x)):.1e}")
count = sum(len(kernel.group.operations) for kernel in cpu.kernels)
print(len(cpu.kernels), "kernels compute", count, "tensors")
cpu.picture()

# %% [markdown]
# Reductions per row, the norm and the softmax, have their own kernels. Pointwise operations before
# and after a product are fused into it. One call runs all kernels, in one arena whose layout is
# planned at compile time. Further calls allocate nothing.
#
# The next machine has 32 cores, whose units compute on sticks of 128 bytes. The axis along the
# sticks is a choice per value, and a product requires its factors to have it along certain axes.
# The compiler selects layouts that minimize the number of elements that are copied:

# %%
sticks = tecomp.compile(Y, [X], constants=weights, target="stick128")
print(f"error {largest_error(sticks(x)):.1e}")
print(str(sticks.report()).splitlines()[0])
for copy in sticks.layouts.relayouts:
    readers = ", ".join(operation.name for operation in copy.readers)
    print(f"{copy.elements} elements of {copy.tensor.name} are copied for {readers}")
print(sticks.layouts.certificate)

# %% [markdown]
# There is one relayout in the whole layer: the attention keys, which the scores read along the
# other axis. The certificate proves that no choice has fewer: the cost equals the lower bound.
#
# Another machine has other layouts. This one has a grid of 64 cores, and tiles of 32 by 32:

# %%
tiles = tecomp.compile(Y, [X], constants=weights, target="tensix_wh")
print(f"error {largest_error(tiles(x)):.1e}")
print(str(tiles.report()).splitlines()[0])
for target, program in (("stick128", sticks), ("tensix_wh", tiles)):
    print(f"{target:10}", program.layouts[U].device_layout.index_map)

# %% [markdown]
# You can override the choice. A soft hint is satisfied if it is worth its cost; a hint with
# `hard=True` is a requirement. The next cell causes an error on purpose: a requirement about an
# axis that does not exist:

# %%
try:
    tecomp.compile(
        Y, [X], constants=weights, target="stick128",
        hints=[tecomp.hint(Y, cores={"heads": 32}, hard=True)],
    )
except tecomp.TecompError as refusal:
    print(refusal.message)

# %% [markdown]
# What does layout assignment save? Without it, the author of the program would copy each value to
# the layout that its reader requires. With `relayouts=False` no copies are inserted, and the error
# names the missing ones:

# %%
try:
    tecomp.compile(Y, [X], constants=weights, target="stick128", relayouts=False)
except tecomp.TecompError as refusal:
    print(refusal.message)


# %% [markdown]
# **Exercise.** The last addition is divided among cores like the product before it. Require that
# it is divided by four along the tokens and by four along the width: 16 cores.

# %%
def answer(Y):
    return []


def check(answer):
    program = tecomp.compile(
        Y, [X], constants=weights, target="stick128", hints=answer(Y)
    )
    assert largest_error(program(x)) < 1e-4
    kernel = next(row for row in program.report().kernels if row.name == "T_add#2")
    assert kernel.cores == 16


# check(answer)

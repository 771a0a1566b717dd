"""Write the table of topi operators in docs/topi.md: `python -m tests.topi.table`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from tecomp import topi

DOCUMENT = Path(__file__).parents[2] / "docs" / "topi.md"
BEGIN, END = "<!-- functions -->\n", "<!-- end of functions -->\n"

GROUPS: list[tuple[str, ModuleType, str]] = [
    ("Tensors", topi, "topi"), ("Neural networks", topi.nn, "topi.nn"),
    ("Images", topi.image, "topi.image"), ("Schedules", topi.generic, "topi.generic"),
]

FORMULA = "element-wise"
SOFTMAX = "schedule: softmax"
VIEW = "view"
PLACES = "gather, or reads under conditions"
# Implementation by prefix of the module of a function; the first match applies.
KINDS: list[tuple[str, str]] = [
    ("math", FORMULA), ("elementwise", FORMULA), ("broadcast", VIEW),
    ("creation", FORMULA),
    ("reduction", "schedule: reduce"), ("scan", "schedule: cumsum, or a scan"),
    ("contraction", "schedule: matmul"), ("transform.gather", PLACES), ("transform", VIEW),
    ("sort", "library: NumPy"), ("signal", "library: NumPy"), ("scatter", "compiled statements"),
    ("nn.normalization", "schedule: rows"), ("nn.dense", "schedule: matmul"),
    ("nn.convolution", "schedule: conv2d"), ("nn.conv_transpose", "schedule: conv2d"),
    ("nn.pooling", "schedule: pool"),
    ("nn.sparse", "compiled statements"), ("nn.rearrange", VIEW), ("nn.pad", PLACES),
    ("nn.upsampling", PLACES), ("nn", FORMULA),
    ("image", PLACES), ("generic", "`tecomp.schedules.auto`"),
]
EXCEPT = {
    "argmax": "schedule: argreduce", "argmin": "schedule: argreduce",
    "cumprod": "schedule: cumsum, or a scan", "cumsum": "schedule: cumsum, or a scan",
    "expand_like": VIEW, "nn.dilate": PLACES, "nn.lrn": FORMULA,
    "nn.binary_dense": "schedule: reduce", "nn.sparse_transpose": "library: NumPy",
    "nn.nll_loss": "element-wise; schedule: reduce", "nn.conv2d_NCHWc": "schedule: auto",
    "nn.softmax": SOFTMAX, "nn.log_softmax": SOFTMAX, "nn.fast_softmax": SOFTMAX,
}

NOTES = {
    "abs": "also bool", "all": "bool operands", "any": "bool operands", "isnan": "also bool",
    "argmax": "NaN counts as the maximum", "argmin": "NaN counts as the minimum",
    "adv_index": "out-of-bounds indices raise an error at run time",
    "gather": "out-of-bounds indices raise an error at run time",
    "gather_nd": "out-of-bounds indices raise an error at run time",
    "take": "`fast`: out-of-bounds indices raise an error at run time",
    "clip": "bounds out of range of the dtype are rejected",
    "cumsum": "bool is accumulated in int32", "cumprod": "bool is accumulated in int32",
    "sum": "bool is accumulated in int32",
    "prod": "bool is accumulated in int32",
    "einsum": "more than two operands are contracted pairwise, from the left",
    "floor_mod": "also floats", "mod": "also floats",
    "layout_transform": "block sizes must divide the axes",
    "matmul": "also batches, which are broadcast", "power": "also integers",
    "max": "NaN propagates", "min": "NaN propagates", "maximum": "NaN propagates",
    "minimum": "NaN propagates", "reshape": "one extent may be -1",
    "round": "ties are rounded away from 0", "sign": "NaN propagates",
    "sort": "NaN counts as the maximum",
    "argwhere": "unused rows are 0; too few rows raise an error at run time",
    "dft": "O(n log n)", "nn.simulated_dequantize": "zero points are cast to the dtype of the data",
    "nn.simulated_quantize": "zero points are cast to the dtype of the data",
    "nn.sparse_dense": "CSR and BSR; out-of-bounds columns are ignored",
    "nn.sparse_transpose": "square CSR matrices",
    "argsort": "NaN counts as the maximum; stable",
    "topk": (
        "`k` must be a constant; NaN counts as the maximum; equal elements are in the order of "
        "their indices; in programs for targets with host memory, rounds of reductions on the "
        "cores if the [cost model](cost-model.md) estimates fewer cycles than for the copies to "
        "the host and back"
    ),
    "flip": "also several axes", "squeeze": "the result may be 0-d",
    "unique": "unused elements are 0, unused indices the length",
    "scatter_elements": "out-of-bounds updates are ignored",
    "scatter_nd": "out-of-bounds updates are ignored",
    "sparse_to_dense": "out-of-bounds indices are ignored",
    "strided_slice": "constant bounds are clipped to the extent", "tile": "as in NumPy",
    "unravel_index": "the shape may also be numbers", "where": "the three operands are broadcast",
    "fast_exp": "same as `exp`", "fast_erf": "same as `erf`", "fast_tanh": "same as `tanh`",
    "nn.fast_softmax": "same as `softmax`", "nn.conv2d": "any order of the layout letters",
    "nn.dense": "any number of leading axes", "nn.matmul": "also batches, which are broadcast",
    "nn.adaptive_pool": "any order of the layout letters",
    "nn.pool2d": "any order of the layout letters",
    "nn.conv": "any order of the layout letters", "nn.relu": "NaN propagates",
    "nn.bias_add": "signature of TVM's C++ API", "nn.l2_normalize": "signature of TVM's C++ API",
    "image.grid_sample": "2-d images; `zeros` and `border`; `bilinear` and `nearest`",
}


def functions(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public functions of a module with their names."""
    for name in sorted(module.__all__ if hasattr(module, "__all__") else vars(module)):
        value = getattr(module, name)
        if inspect.isfunction(value) and value.__module__.startswith("tecomp.topi"):
            yield name, value


def signature(function: Callable[..., Any]) -> str:
    """Return the parameters and defaults of a function, without annotations."""
    plain = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in plain.parameters.values()]
    return str(plain.replace(parameters=bare, return_annotation=plain.empty))


def kind(name: str, function: Callable[..., Any]) -> str:
    """Return the implementation kind of a function."""
    place = function.__module__.removeprefix("tecomp.topi.")
    return EXCEPT.get(name) or next(kind for start, kind in KINDS if place.startswith(start))


def rows(module: ModuleType, prefix: str) -> Iterator[str]:
    """Yield a table row for each function."""
    inside = prefix.removeprefix("topi").removeprefix(".")
    for name, function in functions(module):
        full = f"{inside}.{name}" if inside else name
        yield (f"| `{name}` | `{signature(function)}` | {NOTES.get(full, '')} | "
               f"{kind(full, function)} |\n")


def table() -> str:
    """Return the tables of all groups of functions."""
    parts = []
    for title, module, prefix in GROUPS:
        parts += [f"\n## {title}: `{prefix}`\n\n",
                  "| name | TVM's signature | in tecomp | implementation |\n",
                  "| --- | --- | --- | --- |\n", *rows(module, prefix)]
    return "".join(parts)


def written(text: str) -> str:
    """Return the document with the current table."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}{table()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")

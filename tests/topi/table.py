"""The table of topi's functions in the documents: `python -m tests.topi.table` writes it anew."""

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
    ("Elements and tensors", topi, "topi"), ("Networks", topi.nn, "topi.nn"),
    ("Images", topi.image, "topi.image"), ("Schedules", topi.generic, "topi.generic"),
]

FORMULA = "formula of elements"
SOFTMAX = "schedule: softmax"
VIEW = "view"
PLACES = "reads places that are data or conditions"
# By the module that a function is in; the first that fits.
KINDS: list[tuple[str, str]] = [
    ("math", FORMULA), ("broadcast", FORMULA), ("creation", FORMULA),
    ("reduction", "schedule: reduce"), ("scan", "schedule: cumsum, or a scan"),
    ("contraction", "schedule: matmul"), ("transform.gather", PLACES), ("transform", VIEW),
    ("sort", "library: NumPy"), ("signal", "library: NumPy"), ("scatter", "statements, compiled"),
    ("nn.normalization", "schedule: rows"), ("nn.dense", "schedule: matmul"),
    ("nn.convolution", "schedule: conv2d"), ("nn.conv_transpose", "schedule: conv2d"),
    ("nn.pooling", "schedule: pool"),
    ("nn.sparse", "statements, compiled"), ("nn.rearrange", VIEW), ("nn.pad", PLACES),
    ("nn.upsampling", PLACES), ("nn", FORMULA),
    ("image", PLACES), ("generic", "`tecomp.schedules.auto`"),
]
EXCEPT = {
    "argmax": "schedule: argreduce", "argmin": "schedule: argreduce",
    "broadcast_to": VIEW, "expand_like": VIEW, "nn.dilate": PLACES, "nn.lrn": FORMULA,
    "nn.binary_dense": "schedule: reduce", "nn.sparse_transpose": "library: NumPy",
    "nn.nll_loss": "formula of elements; schedule: reduce", "nn.conv2d_NCHWc": "schedule: auto",
    "nn.softmax": SOFTMAX, "nn.log_softmax": SOFTMAX, "nn.fast_softmax": SOFTMAX,
}

NOTES = {
    "abs": "bool too", "all": "of bool", "any": "of bool", "isnan": "bool too",
    "argmax": "NaN is the greatest", "argmin": "NaN is the least",
    "adv_index": "places outside are refused when it runs",
    "gather": "places outside are refused when it runs",
    "gather_nd": "places outside are refused when it runs",
    "take": "for `fast`, places outside are refused when it runs",
    "clip": "bounds that the type cannot hold are refused",
    "cumsum": "of bool in int32", "cumprod": "of bool in int32", "sum": "of bool in int32",
    "prod": "of bool in int32", "einsum": "several operands two by two, from the left",
    "floor_mod": "of floats too", "mod": "of floats too", "layout_transform": "blocks divide axes",
    "matmul": "batches too, which are broadcast", "power": "of integers too",
    "max": "NaN propagates", "min": "NaN propagates", "maximum": "NaN propagates",
    "minimum": "NaN propagates", "reshape": "-1 for one extent",
    "round": "of two the one away from 0", "sign": "NaN of NaN", "sort": "NaN is the greatest",
    "argwhere": "rows beyond are 0, too few are refused when it runs",
    "dft": "in O(n log n)", "nn.simulated_dequantize": "zero points are cast to the dtype of the data",
    "nn.simulated_quantize": "zero points are cast to the dtype of the data",
    "nn.sparse_dense": "CSR and BSR; columns outside are left out",
    "nn.sparse_transpose": "of square matrices in CSR",
    "argsort": "NaN is the greatest; stable", "topk": "`k` is a number; NaN is the greatest",
    "flip": "several axes too", "squeeze": "no axes may be left",
    "unique": "what is beyond is 0, or the length",
    "scatter_elements": "updates for places outside are left out",
    "scatter_nd": "updates for places outside are left out",
    "sparse_to_dense": "places outside are left out",
    "strided_slice": "what is outside is left out", "tile": "as NumPy's",
    "unravel_index": "extents as numbers too", "where": "three tensors, broadcast",
    "fast_exp": "is `exp`", "fast_erf": "is `erf`", "fast_tanh": "is `tanh`",
    "nn.fast_softmax": "is `softmax`", "nn.conv2d": "any order of letters",
    "nn.dense": "any number of leading axes", "nn.matmul": "batches too, which are broadcast",
    "nn.adaptive_pool": "any order of letters", "nn.pool2d": "any order of letters",
    "nn.conv": "any order of letters", "nn.relu": "NaN stays",
    "nn.bias_add": "of TVM's C++", "nn.l2_normalize": "of TVM's C++",
    "image.grid_sample": "of images; `zeros` and `border`; `bilinear` and `nearest`",
}


def functions(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    """What a module offers that is called."""
    for name in sorted(module.__all__ if hasattr(module, "__all__") else vars(module)):
        value = getattr(module, name)
        if inspect.isfunction(value) and value.__module__.startswith("tecomp.topi"):
            yield name, value


def signature(function: Callable[..., Any]) -> str:
    """Arguments and defaults, without types."""
    plain = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in plain.parameters.values()]
    return str(plain.replace(parameters=bare, return_annotation=plain.empty))


def kind(name: str, function: Callable[..., Any]) -> str:
    """What becomes of a function."""
    place = function.__module__.removeprefix("tecomp.topi.")
    return EXCEPT.get(name) or next(kind for start, kind in KINDS if place.startswith(start))


def rows(module: ModuleType, prefix: str) -> Iterator[str]:
    """A line for each function."""
    inside = prefix.removeprefix("topi").removeprefix(".")
    for name, function in functions(module):
        full = f"{inside}.{name}" if inside else name
        yield (f"| `{name}` | `{signature(function)}` | {NOTES.get(full, '')} | "
               f"{kind(full, function)} |\n")


def table() -> str:
    """All functions by groups."""
    parts = []
    for title, module, prefix in GROUPS:
        parts += [f"\n## {title}: `{prefix}`\n\n", "| name | TVM's signature | here | is |\n",
                  "| --- | --- | --- | --- |\n", *rows(module, prefix)]
    return "".join(parts)


def written(text: str) -> str:
    """The document with the table as it is now."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}{table()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")

"""Names of TVM's that are not here, and what takes their place."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tecomp.errors import MissingError

_LOOPS = (
    "there is no TensorIR; te.create_schedule says how loops run, and tecomp.lower gives them to "
    "print, to read and to evaluate"
)
_STATEMENTS = "there is no TensorIR; write statements in te.extern, with te.ir_builder"
_ELEMENTS = (
    "elements are computed by functions of te, and of C by te.call_pure_extern; call others on "
    "tensors, by te.call_packed or te.call_extern in a te.extern or an intrinsic"
)
_TRACE = (
    "kernels print nothing; make what is to be seen an output, or run tecomp.evaluate of "
    "tecomp.lower step by step"
)
_FIXED_POINT = (
    "topi.fixed_point_multiply multiplies tensors by a number; in a formula widen by .astype, "
    "multiply and shift"
)
_TUNERS = "nothing is tuned by runs; tecomp.build and tecomp.compile schedule tensors by a model"
_PLACES = "a kernel runs where it is called; target= of tecomp.build names the machine"
_PASSES = "tecomp.lower(..., stop_after=) gives the function after any pass, and none is replaced"

ABSENT: Mapping[str, Mapping[str, str]] = MappingProxyType({
    "tecomp.te": {
        "gradient": "no derivatives are made; write them as te.computes",
        "create_prim_func": _LOOPS,
        "create_relax_prim_func": _LOOPS,
        "extern_primfunc": _STATEMENTS,
        "trace": _TRACE,
        "q_multiply_shift": _FIXED_POINT,
        "SpecializedCondition": "sizes may be numbers; build a kernel for those that are frequent",
    },
    "tecomp.compute.hybrid": {
        **dict.fromkeys(("build", "HybridModule"),
                        "tecomp.build makes the kernel, and kernel.source() shows it"),
        **dict.fromkeys(("parse", "source_to_op"), "call what te.hybrid.script gives with tensors"),
    },
    "tecomp.tir": {
        **dict.fromkeys(("PrimFunc", "Schedule", "For", "BufferLoad", "BufferStore", "Evaluate"),
                        _LOOPS),
        **dict.fromkeys(("stmt_functor", "transform", "analysis"), _PASSES),
        **dict.fromkeys(("call_intrin", "call_pure_intrin", "call_llvm_intrin",
                         "call_llvm_pure_intrin"), _ELEMENTS),
        "trace": _TRACE,
        **dict.fromkeys(("q_multiply_shift", "q_multiply_shift_per_axis"), _FIXED_POINT),
        "vscale": "vectors have lengths that are known; split by a number",
    },
    "tecomp": {
        "nd": "kernels take NumPy's arrays, and write to them: numpy.array, numpy.empty",
        **dict.fromkeys(("cpu", "cuda", "device", "context", "runtime"), _PLACES),
        **dict.fromkeys(("autotvm", "auto_scheduler", "meta_schedule"), _TUNERS),
        **dict.fromkeys(("transform", "IRModule", "script"), _PASSES),
        **dict.fromkeys(("relay", "relax"), "tecomp.compile takes programs of tensors of te"),
        "contrib": "libraries are called by names: tecomp.register_func and te.call_packed",
        "testing": "numpy.testing compares arrays",
    },
})


def absent(module: str, name: str) -> AttributeError:
    """What is said of a name that a module has not, by one that knows TVM or not.

    Args:
        module: the name of the module.
        name: what was asked for.
    """
    return MissingError.of(module, module.rpartition(".")[2], name, ABSENT[module])

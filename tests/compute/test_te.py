"""`te` has the names and the parameter order of TVM's `te`."""

from __future__ import annotations

import inspect

import pytest

from tecomp import te

PARAMETERS = {
    "placeholder": "shape dtype name",
    "compute": "shape fcompute name tag attrs varargs_names",
    "reduce_axis": "dom name thread_tag",
    "thread_axis": "dom tag name",
    "scan": "init update state_placeholder inputs name tag attrs",
    "extern": "shape inputs fcompute name dtype in_buffers out_buffers tag attrs",
    "add": "lhs rhs",
    "subtract": "lhs rhs",
    "multiply": "lhs rhs",
    "divide": "lhs rhs",
    "logaddexp": "x y",
    "likely": "cond",
    "tag_scope": "tag",
    "create_schedule": "ops",
    "var": "name dtype minimum maximum multiple",
    "size_var": "name dtype minimum maximum multiple",
    "const": "value dtype",
    "sum": "expr axis where init args",
    "prod": "expr axis where init args",
    "min": "expr axis where init args",
    "max": "expr axis where init args",
    "comm_reducer": "fcombine fidentity name",
    "if_then_else": "cond t f",
    "Select": "condition true_value false_value",
    "power": "x y",
    "clip": "x a_min a_max",
    "gradient": "output inputs head",
}


# Parameters of TVM's functions and methods, in order; our functions may have more after them.
ELEMENTWISE = (
    "exp erf tanh sigmoid log tan cos sin sqrt rsqrt floor ceil sinh cosh log2 log10 asin asinh acos "
    "acosh atan atanh trunc abs round nearbyint popcount isnan isfinite isinf exp10 exp2 log1p clz"
)
OF_TWO = "div indexdiv indexmod truncdiv truncmod floordiv floormod"
FUNCTIONS = {
    **dict.fromkeys(ELEMENTWISE.split(), "x"), **dict.fromkeys(OF_TWO.split(), "a b"),
    "fmod": "x y", "pow": "x y", "copysign": "x1 x2", "nextafter": "x1 x2", "ldexp": "x1 x2",
    "max_value": "dtype", "min_value": "dtype", "infinity": "dtype", "reinterpret": "dtype x",
    "decl_tensor_intrin": "op fcompute name binds scalar_params default_buffer_params",
}
METHODS = {
    "Schedule": {
        "normalize": "", "create_group": "outputs inputs include_inputs",
        "cache_read": "tensor scope readers", "cache_write": "tensor scope",
        "rfactor": "tensor axis factor_axis",
    },
    "Stage": {
        "split": "parent factor nparts disable_predication", "set_scope": "scope",
        "bind": "ivar thread_ivar", "env_threads": "threads",
        "set_store_predicate": "predicate", "compute_at": "parent scope", "compute_inline": "",
        "compute_root": "", "tile": "x_parent y_parent x_factor y_factor",
        "unroll_and_jam": "axis factor tail", "vectorize": "var",
        "tensorize": "var tensor_intrin", "unroll": "var", "parallel": "var",
        "pragma": "var pragma_type pragma_value", "prefetch": "tensor var offset",
        "storage_align": "axis factor offset", "double_buffer": "", "rolling_buffer": "",
        "transform_layout": "mapping_function",
    },
}
CLASSES = (
    "Schedule Stage Tensor TensorSlice PlaceholderOp ComputeOp TensorComputeOp ScanOp ExternOp IterVar "
    "Var"
)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_of_functions(name: str) -> None:
    assert " ".join(inspect.signature(getattr(te, name)).parameters).startswith(FUNCTIONS[name])


@pytest.mark.parametrize(
    ("owner", "name"), [(owner, name) for owner in METHODS for name in METHODS[owner]]
)
def test_parameters_of_methods(owner: str, name: str) -> None:
    _, *parameters = inspect.signature(getattr(getattr(te, owner), name)).parameters
    expected = METHODS[owner][name].split()

    assert parameters[: len(expected)] == expected


def test_methods_of_any_number_of_loops() -> None:
    for name in ("fuse", "reorder"):
        _, loops = inspect.signature(getattr(te.Stage, name)).parameters.values()
        assert loops.kind is loops.VAR_POSITIONAL


def test_classes() -> None:
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0)
    state = te.placeholder((4,), name="state")
    S = te.scan(te.compute((1,), lambda t: A[t]), te.compute((4,), lambda t: state[t - 1]), state)
    E = te.extern((1,), [], lambda ins, outs: outs[0].store(0, 1.0), dtype="float32")

    assert all(inspect.isclass(getattr(te, name)) for name in CLASSES.split())
    assert isinstance(A.op, te.PlaceholderOp)
    assert isinstance(B.op, te.ComputeOp)
    assert isinstance(S.op, te.ScanOp)
    assert isinstance(E.op, te.ExternOp)
    assert isinstance(B.op.axis[0], te.IterVar)


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters(name: str) -> None:
    assert " ".join(inspect.signature(getattr(te, name)).parameters) == PARAMETERS[name]


def test_all_names_exist() -> None:
    assert [name for name in te.__all__ if not hasattr(te, name)] == []
    assert sorted(te.__all__) == sorted(set(te.__all__))


def test_every_public_name_is_listed() -> None:
    public = {
        name
        for name, value in vars(te).items()
        if not name.startswith("_") and not inspect.ismodule(value) and name != "annotations"
    }

    assert public == set(te.__all__)

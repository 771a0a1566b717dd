"""What units compute with the lanes of a vector: arithmetic, and functions that they say they have.

Sizes, types and functions are those of the target's description.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tecomp import Target, TargetError, VectorUnit, te

Function = Callable[..., te.Expr]

_ARITHMETIC: dict[str, Function] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "max": te.max,
    "min": te.min,
}
_FUNCTIONS: dict[str, Function] = {
    each.__name__: each
    for each in (
        te.exp, te.exp2, te.expm1, te.log, te.log1p, te.log2, te.log10, te.sqrt, te.rsqrt, te.tanh,
        te.sigmoid, te.erf, te.sin, te.cos, te.tan, te.asin, te.acos, te.atan, te.sinh, te.cosh,
        te.asinh, te.acosh, te.atanh, te.floor, te.ceil, te.trunc,
    )
}
_WITH_A_NUMBER = ("add", "mul", "max", "min")


def vector_intrinsic(
    target: Target, unit: str, operation: str, dtype: str, *, with_number: bool = False
) -> te.TensorIntrin:
    """One operation of a vector unit, on all of its lanes.

    Each unit adds, subtracts, multiplies and takes the greater or the smaller of two; of what else
    there is, `div` and functions such as `exp`, it has what its table of cycles names.

    Args:
        target: the machine.
        unit: the name of a vector unit of its engine.
        operation: what it does.
        dtype: of the lanes.
        with_number: the second operand is a number, the same for all lanes: of `add`, `mul`, `max`
            and `min`.

    Raises:
        TargetError: there is no such unit, or it has no such operation or type.

    >>> vector_intrinsic(Target.load("stick128"), "sfu", "exp", "float16")
    TensorIntrin(sfu_exp_float16: c[i] = exp(a[i]))
    """
    known = target.engine.get(unit)
    if not isinstance(known, VectorUnit):
        units = [name for name, each in target.engine.items() if isinstance(each, VectorUnit)]
        raise TargetError(
            f"target {target.name} has no vector unit `{unit}`; its vector units are "
            f"{', '.join(units) or 'none'}",
            kind="target-lacks",
        )
    if dtype not in known.types:
        raise TargetError(
            f"unit `{unit}` of target {target.name} takes no {dtype}; its types are "
            f"{', '.join(known.types)}",
            kind="target-lacks",
        )
    table = _table(known, dtype)
    if operation not in table or (with_number and operation not in _WITH_A_NUMBER):
        possible = [name for name in table if not with_number or name in _WITH_A_NUMBER]
        raise TargetError(
            f"unit `{unit}` of target {target.name} has no operation `{operation}` on {dtype}"
            f"{' and a number' if with_number else ''}; its operations are "
            f"{', '.join(possible)}",
            kind="target-lacks",
        )
    return _declared(known, operation, table[operation], dtype, with_number=with_number)


def vector_intrinsics(target: Target) -> list[te.TensorIntrin]:
    """All operations of all vector units, on all of their types."""
    found = []
    for unit in target.engine.values():
        if not isinstance(unit, VectorUnit):
            continue
        for dtype in unit.types:
            table = _table(unit, dtype)
            for name, function in table.items():
                kinds = (False, True) if name in _WITH_A_NUMBER else (False,)
                found += [_declared(unit, name, function, dtype, with_number=n) for n in kinds]
    return found


def _table(unit: VectorUnit, dtype: str) -> dict[str, Function]:
    """What a unit computes with a type, by name."""
    if not te.const(0, dtype).dtype.is_float:
        return _ARITHMETIC
    others = {"div": te.div, **_FUNCTIONS}
    return _ARITHMETIC | {name: others[name] for name in unit.cycles if name in others}


def _declared(
    unit: VectorUnit, operation: str, function: Function, dtype: str, *, with_number: bool
) -> te.TensorIntrin:
    lanes = unit.lanes(dtype)
    number = [te.var("number", dtype)] if with_number else []
    count = 2 if operation in (*_ARITHMETIC, "div") else 1
    ins = [te.placeholder((lanes,), dtype, name=name) for name in "ab"[: count - len(number)]]

    def value(
        places: Sequence[te.Tensor | te.Operand], lane: te.Expr, numbers: Sequence[te.Expr]
    ) -> te.Expr:
        return function(*(place[lane] for place in places), *numbers)

    c = te.compute((lanes,), lambda i: value(ins, i, number), name="c")

    def statements(
        places: Sequence[te.Operand], outs: Sequence[te.Operand], numbers: Sequence[te.Var] = ()
    ) -> te.Stmt:
        return te.for_range(
            0, lanes, lambda i: outs[0].store(i, value(places, i, numbers)), "i", "vectorized")

    name = f"{unit.name}_{operation}{'_number' if with_number else ''}_{dtype}"
    mode = operation if operation in unit.cycles else ""
    return te.decl_tensor_intrin(
        c.op, statements, name, scalar_params=number, unit=unit.name, mode=mode,
        check="later")

"""Lowering rules of all operations, and `lower_ptensor`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, overload

from tecomp.dist.partition.placements import Partial, Replicate
from tecomp.errors import ArrayValueError
from tecomp.ptensor.devices import results_on_device
from tecomp.ptensor.formulas.tables import is_elementwise
from tecomp.ptensor.function import Apply, Function, Module, callees_first, verify, verify_module
from tecomp.ptensor.lowering.device_regions import (
    merge_regions,
    verify_lowered,
    verify_lowered_module,
)
from tecomp.ptensor.lowering.lowered_ir import (
    Binding,
    Compute,
    DeviceRegion,
    Dist,
    Expression,
    FunctionCall,
    Generic,
    ImportStatement,
    InputNumber,
    Literal,
    LoweredFunction,
    LoweredLibraryCall,
    LoweredModule,
    Operand,
    ScalarCall,
    Slice,
    Statement,
    Together,
    ValueName,
    short_name,
)
from tecomp.ptensor.lowering.lowering_context import FreshNames, LoweredCallee, Lowering
from tecomp.ptensor.operation import AttributeOperand, PTensorOp
from tecomp.ptensor.operations.base import Attribute, CallOp, LibraryOperation, ResultType
from tecomp.ptensor.operations.creation import CreateLike, Linspace, MeshGrid
from tecomp.ptensor.operations.manipulation import BroadcastOp, ExpandDims
from tecomp.ptensor.operations.reduction import AxisReduction
from tecomp.ptensor.types import PTensorType, axes_of


def lower_call(lowering: Lowering) -> None:
    """Lower a call; the callee contains its own device regions."""
    op = lowering.apply.op
    assert isinstance(op, CallOp)
    callee = lowering.names.callees.get(op.function)
    if callee is None:
        raise ArrayValueError(
            "callee @{function} is not defined; lower the module that contains both functions",
            kind="ptensor", function=op.function,
        )
    is_new = tuple([
        isinstance(ptype, PTensorType) and ptype.team is not None and not lowering.ignore_team
        and source is None for ptype, source in zip(op.result_types, callee.returned, strict=True)
    ])
    operands = tuple([_call_operand(lowering, k) for k in range(len(lowering.apply.operands))])
    call = FunctionCall(op.function, operands, lowering.apply.types, op.result_types, is_new)
    if len(op.result_types) == 1 and callee.returned == (None,):
        lowering.after.append(Binding(lowering.apply.result or lowering.names.new("called"), call))
        _note(lowering, callee, 0)
        return
    name = lowering.names.new("called")
    lowering.after.append(Binding(name, call))
    for number, result in enumerate(lowering.apply.named_results):
        source = callee.returned[number]
        if source is None:
            lowering.after.append(Binding(result.name, ValueName(name, number)))
            _note(lowering, callee, number)
        else:
            _again(lowering, result.name, source)


def _note(lowering: Lowering, callee: LoweredCallee, number: int) -> None:
    if callee.is_replicated[number] and lowering.apply.named_results:
        lowering.names.whole.add(lowering.apply.named_results[number].name)


def _again(lowering: Lowering, name: str, k: int) -> None:
    """Define a result that aliases an operand as another name, so that it is released only once."""
    operand, ptype = lowering.apply.operands[k], lowering.apply.types[k]
    if isinstance(ptype, str):
        lowering.after.append(Binding(name, ValueName(operand)))
        return
    names = lowering.names
    names.parts[name] = names.tensor(operand), names.gid(operand)
    if operand in names.whole:
        names.whole.add(name)
    location = Literal(ptype.device), Literal(ptype.team)
    lowering.after.append(
        Binding(name, Together((names.tensor(operand), *location, names.gid(operand)))))


def _call_operand(lowering: Lowering, k: int) -> Operand:
    """Return a call operand; replicated tensors are sharded by their first axis for the callee."""
    name, ptype = lowering.apply.operands[k], lowering.apply.types[k]
    names = lowering.names
    if (
        isinstance(ptype, str) or ptype.team is None or lowering.ignore_team or not ptype.shape
        or name not in names.whole
    ):
        return ValueName(name)
    team, device = Literal(ptype.team), Literal(ptype.device)
    gshape, gid, lslice, part, passed = map(
        names.new, ("gshape", "gid", "lslice", "part", "passed"))
    cut = Binding(part, ScalarCall("tensor.extract_slice", (names.tensor(name), ValueName(lslice))))
    local: Statement = cut if ptype.device is None else DeviceRegion(device, (cut,))
    lowering.after += [
        Binding(gshape, ScalarCall("$shape", (Literal(ptype.shape),))),
        Binding(gid, Dist("init_dtensor", (ValueName(gshape),), team, ptype.dtype)),
        Binding(lslice, Dist("local_slice", (ValueName(gid),), team)),
        local,
        Binding(passed, Together((ValueName(part), device, team, ValueName(gid)))),
    ]
    return ValueName(passed)


def _arange(lowering: Lowering) -> None:
    """Lower `arange`, as in the example of the RFC."""
    op: Any = lowering.apply.op
    bounds = [_number(value) for value in (op.start, op.stop, op.step)]
    start = lowering.let("start", InputNumber(1) if isinstance(bounds[0], ValueName) else bounds[0])
    stop = lowering.let("stop", ScalarCall("$compute_stop_index", tuple(bounds)))
    step = lowering.let("step", InputNumber(3) if isinstance(bounds[2], ValueName) else bounds[2])
    gshape = lowering.let("gshape", ScalarCall("$compute_global_shape", tuple(bounds)))
    full_slice = Slice(start.name, stop.name, step.name)
    _generic(lowering, "arange", gshape, full_slice)


def _number(value: Any) -> Operand:
    return ValueName(value.name) if isinstance(value, AttributeOperand) else Literal(value)


def _generic(lowering: Lowering, function: str, gshape: ValueName, full_slice: Expression) -> None:
    """Create a tensor of elements computed from their index; with a team, only the local part."""
    gid: Operand = Literal(None)
    ptype = lowering.type
    if lowering.is_distributed:
        gid = lowering.dist("gid", "init_dtensor", gshape)
        shape = lowering.dist("lshape", "local_shape", gid)
        part = lowering.dist("lslice", "local_slice", gid)
    elif ptype.device is not None:
        shape = gshape
        part = lowering.let("gslice", full_slice)
    else:
        shape = lowering.let("lshape", gshape, printed=False)
        part = lowering.let("lslice", full_slice, printed=False)
    alloc_shape = shape if lowering.is_distributed else gshape
    local = lowering.compute("ltensor", ScalarCall("linalg.init_tensor", (alloc_shape,), ptype))
    # The last operand is the fill value; the operand before it gives the shape.
    value = [lowering.names.tensor(name) for name in lowering.apply.operands[-1:]]
    generic = Generic(function, (part, shape, local, *value), lowering.apply.op, ptype)
    lowering.give(lowering.compute("rtensor", generic), gid, whole=not ptype.shape)


def _creation(lowering: Lowering) -> None:
    """Lower a creation operation whose shape the type or the call of the function gives."""
    gshape = lowering.let("gshape", _shape(lowering))
    full_slice = ScalarCall("$whole", (gshape,))
    _generic(lowering, short_name(lowering.apply.op), gshape, full_slice)


def _shape(lowering: Lowering) -> Expression:
    """Return the shape of a new tensor."""
    op: Any = lowering.apply.op
    if None not in lowering.type.shape or isinstance(op, CreateLike):
        return lowering.shape_of(lowering.type)
    if op.name == "create":
        return ValueName(op.shape.name)
    extents = (op.n,) if isinstance(op, Linspace) else (op.n_rows, op.n_cols)
    return ScalarCall("$extents", tuple(map(_number, extents)))


def _elementwise(lowering: Lowering) -> None:
    """Lower an element-wise operation: each rank computes its shard."""
    apply = lowering.apply
    if apply.result is None or not lowering.is_distributed:
        return _lower_local(lowering)
    is_replicated = all(lowering.is_whole(k) for k in range(len(apply.operands)))
    gid = lowering.new_tensor(placement=Replicate() if is_replicated else None)
    operands = None if is_replicated else [
        _as_result(lowering, k, gid) for k in range(len(apply.operands))
    ]
    tensor = lowering.compute("rtensor", _lower_computation(lowering, operands))
    lowering.give(tensor, gid, whole=is_replicated)
    return None


def _lower_local(lowering: Lowering) -> None:
    """Lower an operation without a team."""
    computed = _lower_computation(lowering)
    if lowering.apply.result is None:
        lowering.body_statements.append(Binding(None, computed))
        return
    result = lowering.compute("rtensor", computed)
    for number, tensor in enumerate(_tensors(lowering, result)):
        lowering.give(tensor, Literal(None), number)


def _as_result(lowering: Lowering, k: int, gid: Operand) -> Operand:
    """Return the part of an operand for the local part of a result cut along its first axis."""
    ptype, result = lowering.types[k], lowering.type
    tensor = lowering.names.tensor(lowering.apply.operands[k])
    is_cut = ptype.rank == result.rank and ptype.shape[0] == result.shape[0]
    if is_cut != lowering.is_whole(k):
        return tensor
    if not is_cut:
        return _gather_operand(lowering, k)
    part = lowering.dist("lslice", "local_slice", gid)
    return lowering.compute("part", ScalarCall("tensor.extract_slice", (tensor, part)))


def _tensors(lowering: Lowering, result: ValueName) -> list[ValueName]:
    """Return the results of an operation, as elements of a tuple if there are several."""
    if not lowering.apply.more:
        return [result]
    return [ValueName(result.name, k) for k in range(len(lowering.apply.named_results))]


def _reduction(lowering: Lowering) -> None:
    """Lower a reduction: each rank reduces its shard, then the partial results are combined."""
    op = lowering.apply.op
    assert isinstance(op, AxisReduction)
    if not lowering.is_distributed or lowering.apply.result is None:
        return _lower_local(lowering)
    (ptype,) = lowering.types
    is_cut = not lowering.is_whole(0)
    is_partial = is_cut and 0 in axes_of(op.axis, ptype.rank, op.name)
    if is_partial and not op.row.is_associative:  # the mean of shard means is not the mean
        return _lower_replicated(lowering)
    is_replicated = is_partial or not is_cut
    placement = Partial(op.row.combiner) if is_partial else Replicate() if is_replicated else None
    result = lowering.compute("rtensor", _lower_computation(lowering))
    gid = lowering.new_tensor(placement=placement)
    if is_partial:
        lowering.after.append(Binding(None, lowering.call("finalize_reduce", gid, result)))
    return lowering.give(result, gid, whole=is_replicated)


def _lower_replicated(lowering: Lowering) -> None:
    """Lower an operation on replicated operands; each rank keeps its shard of the result."""
    apply = lowering.apply
    if not lowering.is_distributed or apply.result is None:
        return _lower_local(lowering)
    operands = [_gather_operand(lowering, k) for k in range(len(apply.operands))]
    is_replicated = all(lowering.is_whole(k) for k in range(len(apply.operands)))
    result = lowering.compute("wresult", _lower_computation(lowering, operands))
    for number, tensor in enumerate(_tensors(lowering, result)):
        ptype = apply.named_results[number].type
        assert isinstance(ptype, PTensorType)
        if None in ptype.shape:
            gid = _register_dynamic(lowering, tensor, ptype)
            lowering.give(tensor, gid, number, whole=True)
        elif is_replicated or not ptype.shape:
            gid = lowering.new_tensor(number, Replicate())
            lowering.give(tensor, gid, number, whole=True)
        else:
            gid = lowering.new_tensor(number)
            part = lowering.dist("lslice", "local_slice", gid)
            local = lowering.compute("rtensor", ScalarCall("tensor.extract_slice", (tensor, part)))
            lowering.give(local, gid, number)
    return None


def _register_dynamic(lowering: Lowering, tensor: ValueName, ptype: PTensorType) -> ValueName:
    """Register a result whose shape is known only after the computation; return its number."""
    gshape, gid = (lowering.names.new(base) for base in ("gshape", "gid"))
    call = lowering.call(
        "init_dtensor", ValueName(gshape), dtype=ptype.dtype, placement=Replicate()
    )
    lowering.after += [Binding(gshape, ScalarCall("$shape_of", (tensor,))), Binding(gid, call)]
    return ValueName(gid)


def _gather_operand(lowering: Lowering, k: int) -> Operand:
    """Return all elements of an operand."""
    name, ptype = lowering.apply.operands[k], lowering.types[k]
    gid, local = lowering.names.gid(name), lowering.names.tensor(name)
    if lowering.is_whole(k):
        return local
    shape = lowering.let("wshape", lowering.shape_of(ptype))
    copied = lowering.dist(
        "wgid", "init_dtensor", shape, dtype=ptype.dtype, placement=Replicate())
    tensor = lowering.let("wtensor", ScalarCall("linalg.init_tensor", (shape,), ptype))
    lowering.before.append(Binding(None, lowering.call("copy", gid, copied, local, tensor)))
    return tensor


def _lower_computation(
    lowering: Lowering, operands: Sequence[Operand] | None = None
) -> Compute | LoweredLibraryCall:
    apply = lowering.apply
    args = tuple(operands or [lowering.names.tensor(name) for name in apply.operands])
    types = lowering.types
    kind = LoweredLibraryCall if isinstance(apply.op, LibraryOperation) else Compute
    results = [
        ptype for ptype in results_on_device(apply.op, *types) if isinstance(ptype, PTensorType)
    ]
    return kind(apply.op, args, types, tuple(results))


def _attribute(lowering: Lowering) -> None:
    """Lower an attribute, a number or a shape, which needs no device region."""
    apply, (x, *_) = lowering.apply, lowering.types
    known: dict[str, Any] = {"rank": x.rank}
    if isinstance(apply.op, ResultType):
        known["result_type"] = apply.op.promoted(*lowering.types)
    if None not in x.shape:
        known["size"] = prod(x.shape)
    if apply.op.name in known:
        value: Expression = Literal(known[apply.op.name])
    elif apply.op.name == "size":
        value = ScalarCall("$num_elements", (lowering.let("gshape", lowering.shape_of(x)),))
    else:
        value = lowering.shape_of(x)
    lowering.before.append(Binding(apply.result, value))


def _import(lowering: Lowering) -> None:
    """Lower an import; with a team, each rank passes all elements and keeps its shard."""
    apply = lowering.apply
    operands = tuple(map(ValueName, apply.operands))
    value = ImportStatement(apply.op, operands, tuple(map(str, apply.types)), lowering.type)
    if not lowering.is_distributed or apply.result is None:
        return lowering.give(lowering.compute("rtensor", value), Literal(None))
    if not lowering.type.shape:
        gid = lowering.new_tensor(placement=Replicate())
        return lowering.give(lowering.compute("rtensor", value), gid, whole=True)
    gid = lowering.new_tensor()
    part = lowering.dist("lslice", "local_slice", gid)
    full = lowering.compute("wtensor", value)
    local = lowering.compute("rtensor", ScalarCall("tensor.extract_slice", (full, part)))
    return lowering.give(local, gid)


_Rule = Callable[[Lowering], None]

_RULES: Mapping[str, _Rule] = {
    "arange": _arange,
    **dict.fromkeys(("create", "create_like", "eye", "linspace"), _creation),
    **dict.fromkeys(("reduce", "test", "count_nonzero"), _reduction),
    **dict.fromkeys(("asarray", "from_dlpack"), _import),
}


def rule_of(op: PTensorOp) -> _Rule:
    """Return the lowering rule of an operation."""
    if isinstance(op, Attribute):
        return _attribute
    if isinstance(op, CallOp):
        return lower_call
    return _RULES.get(op.name, _elementwise if is_elementwise(op) else _lower_replicated)


@overload
def lower_ptensor(function: Function, ignore_team: bool = ...) -> LoweredFunction: ...
@overload
def lower_ptensor(function: Module, ignore_team: bool = ...) -> LoweredModule: ...
def lower_ptensor(
    function: Function | Module, ignore_team: bool = False
) -> LoweredFunction | LoweredModule:
    """Lower a function or a module to plain tensors.

    A parallel tensor becomes a tuple of a tensor, its device, its team and its number. An operation
    on operands with a device runs in a device region. An operation on operands with a team is
    preceded by the required `dist` operations.

    Args:
        function: Function, or module of functions that call each other.
        ignore_team: If True, lower for a single process.

    Raises:
        ArrayValueError: If the function is invalid.

    Source:
        RFC PTensor, "--lower-ptensor".
    """
    if isinstance(function, Function):
        verify(function)
        return _lower_function(function, ignore_team, {})
    verify_module(function)
    callees: dict[str, LoweredCallee] = {}
    module = LoweredModule(tuple([
        _lower_function(definition, ignore_team, callees) for definition in callees_first(function)
    ]))
    verify_lowered_module(module)
    return module


def _lower_function(
    function: Function, ignore_team: bool, callees: dict[str, LoweredCallee]
) -> LoweredFunction:
    """Lower a function, and add its properties to `callees` for its callers."""
    body: list[Statement] = []
    names = FreshNames(function, callees)
    for apply in _expand_composites(function, names):
        lowering = Lowering(apply, names, ignore_team)
        rule_of(apply.op)(lowering)
        body += lowering.statements()
    lowered = LoweredFunction(
        function.name, function.parameters, merge_regions(body), function.results
    )
    verify_lowered(lowered)
    positions = {parameter.name: k for k, parameter in enumerate(function.parameters)}
    callees[function.name] = LoweredCallee(
        tuple([positions.get(name) for name in function.results]),
        tuple([name in names.whole for name in function.results]),
    )
    return lowered


def _expand_composites(function: Function, names: FreshNames) -> Iterator[Apply]:
    """Yield the operations, with composite operations expanded."""
    for apply in function.body:
        if isinstance(apply.op, MeshGrid):
            yield from _grid(apply, apply.op, names)
        else:
            yield apply


def _grid(apply: Apply, op: MeshGrid, names: FreshNames) -> Iterator[Apply]:
    """Expand `meshgrid`: insert axes in each operand and broadcast it."""
    order = op.order(len(apply.operands))
    types = [ptype for ptype in apply.types if isinstance(ptype, PTensorType)]
    results = op.results(*types)
    for k, (result, name, ptype) in enumerate(zip(results, apply.operands, types, strict=True)):
        added = [axis for axis in range(len(order)) if order[axis] != k or not ptype.rank]
        expand = ExpandDims(tuple(added))
        if expand.axis:
            expanded = names.new("axes")
            yield Apply(expanded, expand, (name,), (ptype,), expand.infer(ptype))
            name, ptype = expanded, expand.infer(ptype)
        result_name = apply.named_results[k].name if k < len(apply.named_results) else None
        yield Apply(result_name, BroadcastOp(result.shape), (name,), (ptype,), result)

"""`lower_ptensor`: each tensor becomes a tuple, each operation what computes and where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tecomp.dist.partition.placements import OPS, Partial, Placement, Replicate
from tecomp.ptensor.axes import axes_of
from tecomp.ptensor.elements import is_elementwise
from tecomp.ptensor.function import Apply, Function
from tecomp.ptensor.lowering.lowered import (
    Call,
    Compute,
    DeviceRegion,
    Dist,
    Expression,
    Generic,
    Given,
    Let,
    LibraryCall,
    Literal,
    Lowered,
    Name,
    Operand,
    Slice,
    Statement,
    Together,
    short_name,
)
from tecomp.ptensor.lowering.regions import joined, verify_lowered
from tecomp.ptensor.operation import Argument
from tecomp.ptensor.types import PTensorType
from tecomp.ptensor.verify import verify


def lower_ptensor(function: Function, ignore_team: bool = False) -> Lowered:
    """A function on plain tensors.

    A parallel tensor is a tuple of a tensor, its device, its team and its number. An operation
    whose operands have a device runs in a region of that; one whose operands have a team is
    preceded by what the team has to know.

    Args:
        function: the function.
        ignore_team: whether to do as if there was one process.

    Raises:
        ArrayValueError: the function does not fit together.

    Source:
        RFC PTensor, "--lower-ptensor".
    """
    verify(function)
    body: list[Statement] = []
    names = _Names(function)
    for apply in function.body:
        team = None if ignore_team else apply.type.team
        body += _Lowering(apply, names, team is not None).statements()
    lowered = Lowered(function.name, function.parameters, joined(body), function.results)
    verify_lowered(lowered)
    return lowered


class _Names:
    """Names that are not taken yet, and those of the parts of tensors."""

    def __init__(self, function: Function) -> None:
        made = [each for apply in function.body for each in apply.made]
        self.taken = {each.name for each in [*function.parameters, *made]}
        self.parts: dict[str, tuple[Operand, Operand]] = {}
        self.whole: set[str] = set()

    def tensor(self, name: str) -> Operand:
        """The tensor of a tuple."""
        return self.parts[name][0] if name in self.parts else Name(name, 0)

    def gid(self, name: str) -> Operand:
        """The number of a tuple in its team."""
        return self.parts[name][1] if name in self.parts else Name(name, 3)

    def new(self, base: str) -> str:
        name, count = base, 0
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        return name


@dataclass
class _Lowering:
    """One operation; statements for teams and indices stand before its region."""

    apply: Apply
    names: _Names
    is_distributed: bool
    before: list[Statement] = field(default_factory=list)
    inside: list[Statement] = field(default_factory=list)
    after: list[Statement] = field(default_factory=list)

    def statements(self) -> list[Statement]:
        name = self.apply.op.name
        _RULES.get(name, _rule_of(self.apply))(self)
        device = self.apply.type.device
        if device is None:
            return [*self.before, *self.inside, *self.after]
        region = DeviceRegion(self._place("device", device), tuple(self.inside))
        return [*self.before, region, *self.after]

    def let(self, base: str, value: Expression, *, printed: bool = True) -> Name:
        """A statement before the region."""
        name = self.names.new(base)
        self.before.append(Let(name, value, printed))
        return Name(name)

    def compute(self, base: str, value: Expression) -> Name:
        """A statement inside of the region."""
        name = self.names.new(base)
        self.inside.append(Let(name, value))
        return Name(name)

    def call(
        self, function: str, *operands: Operand, dtype: str | None = None,
        placement: Placement | None = None,
    ) -> Dist:
        """An operation of the team."""
        return Dist(function, operands, self._place("team", self._team), dtype, placement)

    def dist(
        self, base: str, function: str, *operands: Operand, dtype: str | None = None,
        placement: Placement | None = None,
    ) -> Name:
        """What such an operation gives, before the region."""
        dtype = dtype or (self.apply.type.dtype if function == "init_dtensor" else None)
        return self.let(base, self.call(function, *operands, dtype=dtype, placement=placement))

    def new_tensor(self, number: int = 0, placement: Placement | None = None) -> Name:
        """The number of a result."""
        type = self.apply.made[number].type
        assert isinstance(type, PTensorType)
        gshape = self.let("gshape", self.shape_of(type))
        return self.dist("gid", "init_dtensor", gshape, dtype=type.dtype, placement=placement)

    def shape_of(self, type: PTensorType) -> Call:
        """The extents of the whole of a tensor; of an operand, if only the call says them."""
        if None in type.shape:
            for name, other in zip(self.apply.operands, self.apply.types, strict=True):
                if other.shape == type.shape:
                    team = self._place("team", self._team)
                    return Call("$global_shape", (team, self.names.gid(name)))
        return Call("$shape", (Literal(type.shape),))

    def is_whole(self, k: int) -> bool:
        """Whether each process has all elements of an operand."""
        return not self.apply.types[k].shape or self.apply.operands[k] in self.names.whole

    def give(self, tensor: Operand, gid: Operand, number: int = 0, *, whole: bool = False) -> None:
        """The tuple that a result is; `whole` if each process has all of its elements."""
        name = self.apply.made[number].name
        if whole:
            self.names.whole.add(name)
        self.names.parts[name] = tensor, gid
        place = self._place("device", self.apply.type.device), self._place("team", self._team)
        self.after.append(Let(name, Together((tensor, *place, gid))))

    @property
    def _team(self) -> int | None:
        return self.apply.type.team

    def _place(self, attribute: str, known: Any) -> Operand:
        """Device or team: as the operation was given it, or what its operands have."""
        given = getattr(self.apply.op, attribute, known)
        return Name(given.name) if isinstance(given, Argument) else Literal(known)


def _arange(lowering: _Lowering) -> None:
    """Numbers in steps: the document's own example."""
    op: Any = lowering.apply.op
    given = [_number(value) for value in (op.start, op.stop, op.step)]
    start = lowering.let("start", Given(1) if isinstance(given[0], Name) else given[0])
    stop = lowering.let("stop", Call("$compute_stop_index", tuple(given)))
    step = lowering.let("step", Given(3) if isinstance(given[2], Name) else given[2])
    gshape = lowering.let("gshape", Call("$compute_global_shape", tuple(given)))
    whole = Slice(start.name, stop.name, step.name)
    _generic(lowering, "arange", gshape, whole)


def _number(value: Any) -> Operand:
    return Name(value.name) if isinstance(value, Argument) else Literal(value)


def _generic(lowering: _Lowering, function: str, gshape: Name, whole: Expression) -> None:
    """A new tensor whose elements follow from their index: the local part of it, in a team."""
    gid: Operand = Literal(None)
    type = lowering.apply.type
    if lowering.is_distributed:
        gid = lowering.dist("gid", "init_dtensor", gshape)
        shape = lowering.dist("lshape", "local_shape", gid)
        part = lowering.dist("lslice", "local_slice", gid)
    elif type.device is not None:
        shape = gshape
        part = lowering.let("gslice", whole)
    else:
        shape = lowering.let("lshape", gshape, printed=False)
        part = lowering.let("lslice", whole, printed=False)
    room = shape if lowering.is_distributed else gshape
    local = lowering.compute("ltensor", Call("linalg.init_tensor", (room,), type))
    # The last of the operands is the value of all elements; the one before says the shape.
    value = [lowering.names.tensor(name) for name in lowering.apply.operands[-1:]]
    made = Generic(function, (part, shape, local, *value), lowering.apply.op, type)
    lowering.give(lowering.compute("rtensor", made), gid, whole=not type.shape)


def _creation(lowering: _Lowering) -> None:
    """A new tensor of a shape that is known."""
    shape = Literal(lowering.apply.type.shape)
    gshape = lowering.let("gshape", Call("$shape", (shape,)))
    whole = Call("$whole", (gshape,))
    _generic(lowering, short_name(lowering.apply.op), gshape, whole)


def _elementwise(lowering: _Lowering) -> None:
    """Each process computes the elements that it has."""
    apply = lowering.apply
    if apply.result is None or not lowering.is_distributed:
        return _alone(lowering)
    whole = all(lowering.is_whole(k) for k in range(len(apply.operands)))
    gid = lowering.new_tensor(placement=Replicate() if whole else None)
    given = None if whole else [_as_result(lowering, k, gid) for k in range(len(apply.operands))]
    lowering.give(lowering.compute("rtensor", _computed(lowering, given)), gid, whole=whole)
    return None


def _alone(lowering: _Lowering) -> None:
    """As one process does it."""
    computed = _computed(lowering)
    if lowering.apply.result is None:
        lowering.inside.append(Let(None, computed))
        return
    result = lowering.compute("rtensor", computed)
    for number, tensor in enumerate(_tensors(lowering, result)):
        lowering.give(tensor, Literal(None), number)


def _as_result(lowering: _Lowering, k: int, gid: Operand) -> Operand:
    """What a process needs of an operand for its part of the result, whose first axis is cut."""
    type, result = lowering.apply.types[k], lowering.apply.type
    tensor = lowering.names.tensor(lowering.apply.operands[k])
    is_cut = type.rank == result.rank and type.shape[0] == result.shape[0]
    if is_cut != lowering.is_whole(k):
        return tensor
    if not is_cut:
        return _whole(lowering, k)
    part = lowering.dist("lslice", "local_slice", gid)
    return lowering.compute("part", Call("tensor.extract_slice", (tensor, part)))


def _tensors(lowering: _Lowering, result: Name) -> list[Name]:
    """The results of an operation: what it computed, or the parts of that."""
    if not lowering.apply.more:
        return [result]
    return [Name(result.name, k) for k in range(len(lowering.apply.made))]


def _reduction(lowering: _Lowering) -> None:
    """Each process reduces what it has; then they combine what they found."""
    op: Any = lowering.apply.op
    how = {"count_nonzero": "sum"}.get(op.name) or op.kind
    if not lowering.is_distributed or lowering.apply.result is None:
        return _alone(lowering)
    (type,) = lowering.apply.types
    is_cut = not lowering.is_whole(0)
    is_partial = is_cut and 0 in axes_of(op.axis, type.rank, op.name)
    if is_partial and how not in OPS:  # averages of averages are none
        return _gathered(lowering)
    whole = is_partial or not is_cut
    placement = Partial(how) if is_partial else Replicate() if whole else None
    result = lowering.compute("rtensor", _computed(lowering))
    gid = lowering.new_tensor(placement=placement)
    if is_partial:
        lowering.after.append(Let(None, lowering.call("finalize_reduce", gid, result)))
    return lowering.give(result, gid, whole=whole)


def _gathered(lowering: _Lowering) -> None:
    """What needs elements of other processes: each has all of the operands, and keeps its part."""
    apply = lowering.apply
    if not lowering.is_distributed or apply.result is None:
        return _alone(lowering)
    given = [_whole(lowering, k) for k in range(len(apply.operands))]
    is_everywhere = all(lowering.is_whole(k) for k in range(len(apply.operands)))
    result = lowering.compute("wresult", _computed(lowering, given))
    for number, tensor in enumerate(_tensors(lowering, result)):
        type = apply.made[number].type
        assert isinstance(type, PTensorType)
        if None in type.shape:
            gid = _counted(lowering, tensor, type)
            lowering.give(tensor, gid, number, whole=True)
        elif is_everywhere or not type.shape:
            gid = lowering.new_tensor(number, Replicate())
            lowering.give(tensor, gid, number, whole=True)
        else:
            gid = lowering.new_tensor(number)
            part = lowering.dist("lslice", "local_slice", gid)
            local = lowering.compute("rtensor", Call("tensor.extract_slice", (tensor, part)))
            lowering.give(local, gid, number)
    return None


def _counted(lowering: _Lowering, tensor: Name, type: PTensorType) -> Name:
    """The number of a result whose extents are known when it is there."""
    gshape, gid = (lowering.names.new(base) for base in ("gshape", "gid"))
    made = lowering.call("init_dtensor", Name(gshape), dtype=type.dtype, placement=Replicate())
    lowering.after += [Let(gshape, Call("$shape_of", (tensor,))), Let(gid, made)]
    return Name(gid)


def _whole(lowering: _Lowering, k: int) -> Operand:
    """All elements of an operand."""
    name, type = lowering.apply.operands[k], lowering.apply.types[k]
    gid, local = lowering.names.gid(name), lowering.names.tensor(name)
    if lowering.is_whole(k):
        return local
    shape = lowering.let("wshape", lowering.shape_of(type))
    copied = lowering.dist(
        "wgid", "init_dtensor", shape, dtype=type.dtype, placement=Replicate())
    tensor = lowering.let("wtensor", Call("linalg.init_tensor", (shape,), type))
    lowering.before.append(Let(None, lowering.call("copy", gid, copied, local, tensor)))
    return tensor


def _computed(
    lowering: _Lowering, operands: Sequence[Operand] | None = None
) -> Compute | LibraryCall:
    apply = lowering.apply
    given = tuple(operands or [lowering.names.tensor(name) for name in apply.operands])
    types: tuple[PTensorType, ...] = apply.types
    if apply.op.library is not None:
        return LibraryCall(apply.op, given, types, apply.op.results(*types))
    return Compute(apply.op, given, types, apply.type)


_Rule = Callable[[_Lowering], None]

_RULES: Mapping[str, _Rule] = {
    "arange": _arange,
    **dict.fromkeys(("create", "create_like", "eye", "linspace"), _creation),
    **dict.fromkeys(("reduce", "test", "count_nonzero"), _reduction),
}


def _rule_of(apply: Apply) -> _Rule:
    return _elementwise if is_elementwise(apply.op) else _gathered

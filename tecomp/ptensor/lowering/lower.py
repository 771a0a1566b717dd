"""`lower_ptensor`: each tensor becomes a tuple, each operation what computes and where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tecomp.ptensor.elements import is_elementwise
from tecomp.ptensor.function import Apply, Function
from tecomp.ptensor.lowering.lowered import (
    Call,
    Compute,
    DeviceRegion,
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

    def give(self, tensor: Operand, gid: Operand, number: int = 0) -> None:
        """The tuple that a result is."""
        name = self.apply.made[number].name
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
    if lowering.is_distributed:
        gid = lowering.let("gid", Call("dist.init_dtensor", (gshape,)))
        shape = lowering.let("lshape", Call("dist.local_shape", (gid,)))
        part = lowering.let("lslice", Call("dist.local_slice", (gid,)))
    elif lowering.apply.type.device is not None:
        shape = gshape
        part = lowering.let("gslice", whole)
    else:
        shape = lowering.let("lshape", gshape, printed=False)
        part = lowering.let("lslice", whole, printed=False)
    room = shape if lowering.is_distributed else gshape
    local = lowering.compute("ltensor", Call("linalg.init_tensor", (room,)))
    result = lowering.compute("rtensor", Generic(function, (part, shape, local)))
    lowering.give(result, gid)


def _creation(lowering: _Lowering) -> None:
    """A new tensor of a shape that is known."""
    shape = Literal(lowering.apply.type.shape)
    gshape = lowering.let("gshape", Call("$shape", (shape,)))
    whole = Call("$whole", (gshape,))
    _generic(lowering, short_name(lowering.apply.op), gshape, whole)


def _elementwise(lowering: _Lowering) -> None:
    """Each process computes the elements that it has."""
    computed = _computed(lowering)
    if lowering.apply.result is None:
        lowering.inside.append(Let(None, computed))
        return
    result = lowering.compute("rtensor", computed)
    for number, tensor in enumerate(_tensors(lowering, result)):
        lowering.give(tensor, _new_tensor(lowering, number), number)


def _tensors(lowering: _Lowering, result: Name) -> list[Name]:
    """The results of an operation: what it computed, or the parts of that."""
    if not lowering.apply.more:
        return [result]
    return [Name(result.name, k) for k in range(len(lowering.apply.made))]


def _new_tensor(lowering: _Lowering, number: int = 0) -> Operand:
    if not lowering.is_distributed:
        return Literal(None)
    type = lowering.apply.made[number].type
    assert isinstance(type, PTensorType)
    gshape = lowering.let("gshape", Call("$shape", (Literal(type.shape),)))
    return lowering.let("gid", Call("dist.init_dtensor", (gshape,)))


def _reduction(lowering: _Lowering) -> None:
    """Each process reduces what it has; then they combine what they found."""
    result = lowering.compute("rtensor", _computed(lowering))
    gid = _new_tensor(lowering)
    if lowering.is_distributed:
        lowering.after.append(Let(None, Call("dist.finalize_reduce", (gid, result))))
    lowering.give(result, gid)


def _gathered(lowering: _Lowering) -> None:
    """What needs elements of other processes: each has all of the operands, and keeps its part."""
    apply = lowering.apply
    if not lowering.is_distributed:
        return _elementwise(lowering)
    whole: list[Operand] = []
    for name, type in zip(apply.operands, apply.types, strict=True):
        shape = lowering.let("wshape", Call("$shape", (Literal(type.shape),)))
        tensor = lowering.let("wtensor", Call("linalg.init_tensor", (shape,)))
        names = lowering.names
        move = Call("dist.copy", (names.gid(name), names.tensor(name), tensor))
        lowering.before.append(Let(None, move))
        whole.append(tensor)
    result = lowering.compute("wresult", _computed(lowering, whole))
    for number, tensor in enumerate(_tensors(lowering, result)):
        gid = _new_tensor(lowering, number)
        part = lowering.let("lslice", Call("dist.local_slice", (gid,)))
        local = lowering.compute("rtensor", Call("tensor.extract_slice", (tensor, part)))
        lowering.give(local, gid, number)
    return None


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
    **dict.fromkeys(("reduce", "test"), _reduction),
}


def _rule_of(apply: Apply) -> _Rule:
    return _elementwise if is_elementwise(apply.op) else _gathered

"""State of the lowering of one operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tecomp.dist.partition.placements import Placement
from tecomp.ptensor.function import Apply, Function
from tecomp.ptensor.lowering.lowered_ir import (
    Call,
    DeviceRegion,
    Dist,
    Expression,
    Let,
    Literal,
    Name,
    Operand,
    Statement,
    Together,
)
from tecomp.ptensor.operation import Argument
from tecomp.ptensor.types import PTensorType


@dataclass(frozen=True, slots=True)
class Callee:
    """What a call has to know of a function that is lowered.

    Attributes:
        returned: of each result, the parameter that it is; None for a new value.
        whole: of each result, whether each process has all of its elements.
    """

    returned: tuple[int | None, ...]
    whole: tuple[bool, ...]


class Names:
    """Names that are not taken yet, and those of the parts of tensors."""

    def __init__(self, function: Function, callees: Mapping[str, Callee]) -> None:
        self.callees = callees
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
        """A name that is not taken."""
        name, count = base, 0
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        return name


@dataclass
class Lowering:
    """One operation; statements for teams and indices stand before its region."""

    apply: Apply
    names: Names
    ignore_team: bool = False
    before: list[Statement] = field(default_factory=list)
    inside: list[Statement] = field(default_factory=list)
    after: list[Statement] = field(default_factory=list)

    def statements(self) -> list[Statement]:
        """Those of the operation, which a rule has added; of no device, without a region."""
        if not self.inside or self.place.device is None:
            return [*self.before, *self.inside, *self.after]
        region = DeviceRegion(self._where("device", self.place.device), tuple(self.inside))
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
        return Dist(function, operands, self.team, dtype, placement)

    def dist(
        self, base: str, function: str, *operands: Operand, dtype: str | None = None,
        placement: Placement | None = None,
    ) -> Name:
        """What such an operation gives, before the region."""
        dtype = dtype or (self.type.dtype if function == "init_dtensor" else None)
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
            for name, other in zip(self.apply.operands, self.types, strict=True):
                if other.shape == type.shape:
                    return self._extents_of(name, other)
        return Call("$shape", (Literal(type.shape),))

    def _extents_of(self, name: str, type: PTensorType) -> Call:
        """The extents of an operand, as the call says them."""
        if type.team is None or self.ignore_team:
            return Call("$shape_of", (self.names.tensor(name),))
        return Call("$global_shape", (Literal(type.team), self.names.gid(name)))

    def is_whole(self, k: int) -> bool:
        """Whether each process has all elements of an operand."""
        return not self.types[k].shape or self.apply.operands[k] in self.names.whole

    def give(self, tensor: Operand, gid: Operand, number: int = 0, *, whole: bool = False) -> None:
        """The tuple that a result is; `whole` if each process has all of its elements."""
        if number >= len(self.apply.made):
            return  # nobody can read it
        name = self.apply.made[number].name
        if whole:
            self.names.whole.add(name)
        self.names.parts[name] = tensor, gid
        place = self._where("device", self.place.device), self.team
        self.after.append(Let(name, Together((tensor, *place, gid))))

    @property
    def is_distributed(self) -> bool:
        """Whether the team has to know of it."""
        return self.place.team is not None and not self.ignore_team

    @property
    def type(self) -> PTensorType:
        """The type of the result, which is a tensor."""
        assert isinstance(self.apply.type, PTensorType)
        return self.apply.type

    @property
    def types(self) -> tuple[PTensorType, ...]:
        """The types of the operands that are tensors."""
        return tuple([each for each in self.apply.types if isinstance(each, PTensorType)])

    @property
    def place(self) -> PTensorType:
        """What says where it is done: the result, or the first operand if that is a scalar."""
        return self.types[0] if isinstance(self.apply.type, str) else self.type

    @property
    def team(self) -> Operand:
        """The processes."""
        return self._where("team", self.place.team)

    def _where(self, attribute: str, known: Any) -> Operand:
        """Device or team: as the operation was given it, or what its operands have."""
        given = getattr(self.apply.op, attribute, known)
        return Name(given.name) if isinstance(given, Argument) else Literal(known)

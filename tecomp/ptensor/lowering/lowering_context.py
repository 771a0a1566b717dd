"""State of the lowering of one operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tecomp.dist.partition.placements import Placement
from tecomp.ptensor.function import Apply, Function
from tecomp.ptensor.lowering.lowered_ir import (
    Binding,
    DeviceRegion,
    Dist,
    Expression,
    Literal,
    Operand,
    ScalarCall,
    Statement,
    Together,
    ValueName,
)
from tecomp.ptensor.operation import AttributeOperand
from tecomp.ptensor.types import PTensorType


@dataclass(frozen=True, slots=True)
class LoweredCallee:
    """Properties of a lowered function that its callers need.

    Attributes:
        returned: For each result, the parameter that it aliases; None for a new value.
        is_replicated: For each result, whether it is replicated on all ranks.
    """

    returned: tuple[int | None, ...]
    is_replicated: tuple[bool, ...]


class FreshNames:
    """Generator of unused names, and the names of the parts of lowered tensors."""

    def __init__(self, function: Function, callees: Mapping[str, LoweredCallee]) -> None:
        self.callees = callees
        results = [result for apply in function.body for result in apply.named_results]
        self.taken = {value.name for value in [*function.parameters, *results]}
        self.parts: dict[str, tuple[Operand, Operand]] = {}
        self.whole: set[str] = set()

    def tensor(self, name: str) -> Operand:
        """Return the tensor of a tuple."""
        return self.parts[name][0] if name in self.parts else ValueName(name, 0)

    def gid(self, name: str) -> Operand:
        """Return the team number of a tensor, from its tuple."""
        return self.parts[name][1] if name in self.parts else ValueName(name, 3)

    def new(self, base: str) -> str:
        """Return an unused name."""
        name, count = base, 0
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        return name


@dataclass
class Lowering:
    """Lowering of one operation; statements for teams and indices precede its device region."""

    apply: Apply
    names: FreshNames
    ignore_team: bool = False
    before: list[Statement] = field(default_factory=list)
    body_statements: list[Statement] = field(default_factory=list)
    after: list[Statement] = field(default_factory=list)

    def statements(self) -> list[Statement]:
        """Return the statements that the rule has added; without a device, there is no region."""
        if not self.body_statements or self.place.device is None:
            return [*self.before, *self.body_statements, *self.after]
        region = DeviceRegion(self._where("device", self.place.device), tuple(self.body_statements))
        return [*self.before, region, *self.after]

    def let(self, base: str, value: Expression, *, printed: bool = True) -> ValueName:
        """Add a statement before the region."""
        name = self.names.new(base)
        self.before.append(Binding(name, value, printed))
        return ValueName(name)

    def compute(self, base: str, value: Expression) -> ValueName:
        """Add a statement inside the region."""
        name = self.names.new(base)
        self.body_statements.append(Binding(name, value))
        return ValueName(name)

    def call(
        self, function: str, *operands: Operand, dtype: str | None = None,
        placement: Placement | None = None,
    ) -> Dist:
        """Add an operation of the team."""
        return Dist(function, operands, self.team, dtype, placement)

    def dist(
        self, base: str, function: str, *operands: Operand, dtype: str | None = None,
        placement: Placement | None = None,
    ) -> ValueName:
        """Add an operation of the team before the region, and return its result."""
        dtype = dtype or (self.type.dtype if function == "init_dtensor" else None)
        return self.let(base, self.call(function, *operands, dtype=dtype, placement=placement))

    def new_tensor(self, number: int = 0, placement: Placement | None = None) -> ValueName:
        """Add a new distributed tensor for a result, and return its number."""
        ptype = self.apply.named_results[number].type
        assert isinstance(ptype, PTensorType)
        gshape = self.let("gshape", self.shape_of(ptype))
        return self.dist("gid", "init_dtensor", gshape, dtype=ptype.dtype, placement=placement)

    def shape_of(self, ptype: PTensorType) -> ScalarCall:
        """Return the global shape of a tensor, read from an operand if unknown at compile time."""
        if None in ptype.shape:
            for name, other in zip(self.apply.operands, self.types, strict=True):
                if other.shape == ptype.shape:
                    return self._extents_of(name, other)
        return ScalarCall("$shape", (Literal(ptype.shape),))

    def _extents_of(self, name: str, ptype: PTensorType) -> ScalarCall:
        """Return the run-time extents of an operand."""
        if ptype.team is None or self.ignore_team:
            return ScalarCall("$shape_of", (self.names.tensor(name),))
        return ScalarCall("$global_shape", (Literal(ptype.team), self.names.gid(name)))

    def is_whole(self, k: int) -> bool:
        """Return whether an operand is replicated on all ranks."""
        return not self.types[k].shape or self.apply.operands[k] in self.names.whole

    def give(self, tensor: Operand, gid: Operand, number: int = 0, *, whole: bool = False) -> None:
        """Define a result as a tuple; `whole` if it is replicated on all ranks."""
        if number >= len(self.apply.named_results):
            return  # the result is unused
        name = self.apply.named_results[number].name
        if whole:
            self.names.whole.add(name)
        self.names.parts[name] = tensor, gid
        location = self._where("device", self.place.device), self.team
        self.after.append(Binding(name, Together((tensor, *location, gid))))

    @property
    def is_distributed(self) -> bool:
        """Whether the operation has a team."""
        return self.place.team is not None and not self.ignore_team

    @property
    def type(self) -> PTensorType:
        """Type of the result, which is a tensor."""
        assert isinstance(self.apply.type, PTensorType)
        return self.apply.type

    @property
    def types(self) -> tuple[PTensorType, ...]:
        """Types of the tensor operands."""
        return tuple([operand for operand in self.apply.types if isinstance(operand, PTensorType)])

    @property
    def place(self) -> PTensorType:
        """Type that gives device and team: the result, or the first operand for scalar results."""
        return self.types[0] if isinstance(self.apply.type, str) else self.type

    @property
    def team(self) -> Operand:
        """Team of the operation."""
        return self._where("team", self.place.team)

    def _where(self, attribute: str, known: Any) -> Operand:
        """Return device or team, as an attribute of the operation or from its operands."""
        value = getattr(self.apply.op, attribute, known)
        return ValueName(value.name) if isinstance(value, AttributeOperand) else Literal(known)

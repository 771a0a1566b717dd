"""IR of lowered functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tecomp.dist.partition.placements import Placement
from tecomp.ptensor.function import Parameter, together
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.types import PTensorType, ValueType


@dataclass(frozen=True, slots=True)
class Name:
    """A value that a statement made, or an element of the tuple that a tensor became."""

    name: str
    part: int | None = None

    def __str__(self) -> str:
        return f"%{self.name}" + (f"[{self.part}]" if self.part is not None else "")


@dataclass(frozen=True, slots=True)
class Given:
    """A number that the operation was given, by its place there, from 1."""

    position: int

    def __str__(self) -> str:
        return f"${self.position}"


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that is known."""

    value: object

    def __str__(self) -> str:
        return repr(self.value)


Operand: TypeAlias = Name | Given | Literal


@dataclass(frozen=True, slots=True)
class Call:
    """A function that gives a value: of index arithmetic (`$compute_...`), or of plain tensors.

    Attributes:
        function: its name, as it is printed.
        operands: what it takes.
        type: element type and device of a new tensor, which are not printed.
    """

    function: str
    operands: tuple[Operand, ...]
    type: PTensorType | None = None

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.operands))})"


@dataclass(frozen=True, slots=True)
class Dist:
    """An operation on tensors that a team has.

    Attributes:
        function: its name behind `dist.`.
        operands: what it takes; the numbers of tensors come first, then their local parts.
        team: the processes, which are not printed.
        dtype: the element type of a new tensor, which is not printed.
        placement: what each process has of a new tensor; blocks of the first axis if None.

    Source:
        RFC PTensor, "Dist Operations".
    """

    function: str
    operands: tuple[Operand, ...]
    team: Operand
    dtype: str | None = None
    placement: Placement | None = None

    def __str__(self) -> str:
        placed = [] if self.placement is None else [self.placement]
        return f"dist.{self.function}({', '.join(map(str, [*self.operands, *placed]))})"


@dataclass(frozen=True, slots=True)
class RuntimeCall:
    """A call of a function of `tecomp.dist`, which does what an operation of `dist` says.

    Attributes:
        function: its name.
        team: the processes.
        operands: what it takes behind the team.
        placements: those of a new tensor, if they are not the usual ones.
    """

    function: str
    team: Operand
    operands: tuple[Operand, ...]
    placements: tuple[Placement, ...] = ()

    def __str__(self) -> str:
        inside = [*map(str, (self.team, *self.operands))]
        inside += [f"placements={list(self.placements)}"] if self.placements else []
        return f"call @dist.{self.function}({', '.join(inside)})"


@dataclass(frozen=True, slots=True)
class Slice:
    """The numbers from `start` to `stop` in steps."""

    start: str
    stop: str
    step: str

    def __str__(self) -> str:
        return f"slice(${self.start}, ${self.stop}, ${self.step})"

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What it is made of."""
        return Name(self.start), Name(self.stop), Name(self.step)


@dataclass(frozen=True, slots=True)
class Generic:
    """Elements of a new tensor, each computed from its index.

    Attributes:
        function: the operation whose elements they are.
        operands: the slice, the shape, the tensor that is written, and a value that it is given.
        op: the operation.
        type: of the whole tensor.
    """

    function: str
    operands: tuple[Operand, ...]
    op: Operation
    type: PTensorType

    def __str__(self) -> str:
        # A slice says all of a range.
        said = () if self.function == "arange" else _attributes(self.op)
        inside = ", ".join([*map(str, self.operands), *said])
        return f"linalg.generic($compute_{self.function}, {inside})"


def _attributes(op: Operation) -> tuple[str, ...]:
    """What an operation computes, without where, and without the shape that is made before."""
    return tuple([
        f"{name}={value!r}" for name, value in op.attributes
        if name not in ("device", "shape", "team")
    ])


@dataclass(frozen=True, slots=True)
class Import:
    """A tensor of what comes from outside: a buffer, or a number.

    Attributes:
        op: the operation.
        operands: what the function is called with.
        types: the scalar types of these.
        type: of the result.
    """

    op: Operation
    operands: tuple[Operand, ...]
    types: tuple[str, ...]
    type: PTensorType

    def __str__(self) -> str:
        inside = ", ".join([*map(str, self.operands), *_attributes(self.op)])
        types = ", ".join(self.types)
        return f"memref.{self.op.name}({inside}): ({types}) -> {tensor_text(self.type)}"


@dataclass(frozen=True, slots=True)
class Compute:
    """An operation on plain tensors, one stage of `te` or several.

    Attributes:
        op: the operation.
        operands: the tensors.
        types: their types.
        results: the types of the results: a tensor, or a tuple of several.
    """

    op: Operation
    operands: tuple[Operand, ...]
    types: tuple[PTensorType, ...]
    results: tuple[PTensorType, ...]

    def __str__(self) -> str:
        inside = [*map(str, self.operands), *(f"{n}={v!r}" for n, v in self.op.attributes)]
        types = ", ".join(map(tensor_text, self.types))
        head = f"linalg.{short_name(self.op)}({', '.join(inside)})"
        return f"{head}: ({types}) -> {together([tensor_text(each) for each in self.results])}"


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """A function of a library, for what a library does better.

    Attributes:
        op: the operation that it computes.
        operands: the tensors.
        types: their types.
        results: the types of what it gives: a tensor, or a tuple of several.
    """

    op: Operation
    operands: tuple[Operand, ...]
    types: tuple[PTensorType, ...]
    results: tuple[PTensorType, ...]

    def __str__(self) -> str:
        types = ", ".join(map(tensor_text, self.types))
        inside = [*map(str, self.operands), *(f"{n}={v!r}" for n, v in self.op.attributes)]
        head = f"library_call{{{self.op.library!r}}}({', '.join(inside)})"
        return f"{head}: ({types}) -> {together([tensor_text(each) for each in self.results])}"


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of another lowered function: tensors go there and come back as tuples.

    Attributes:
        function: its name.
        operands: tuples, and scalars.
        types: those of the values, before they became tuples.
        results: those of what it gives.
        fresh: of each result, whether it is a tensor of a team that the caller has to end.
    """

    function: str
    operands: tuple[Operand, ...]
    types: tuple[ValueType, ...]
    results: tuple[ValueType, ...]
    fresh: tuple[bool, ...]

    def __str__(self) -> str:
        types = ", ".join(map(_tuple_text, self.types))
        results = together([_tuple_text(each) for each in self.results])
        inside = ", ".join(map(str, self.operands))
        return f"func.call @{self.function}({inside}): ({types}) -> {results}"


@dataclass(frozen=True, slots=True)
class Together:
    """What a parallel tensor becomes: a tensor, its device, its team, and its number there."""

    operands: tuple[Operand, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.operands))


Expression: TypeAlias = (
    Name | Given | Literal | Call | Slice | Generic | Import | Compute | LibraryCall | Together
    | Dist | RuntimeCall | FunctionCall
)


@dataclass(frozen=True, slots=True)
class Let:
    """A value with a name; without one, if nobody reads it.

    Attributes:
        result: the name.
        value: what it is.
        printed: whether it is done when the function runs; if not, it is another name.
    """

    result: str | None
    value: Expression
    printed: bool = True

    def lines(self) -> Iterator[str]:
        """The printed form."""
        if self.printed:
            yield f"{self.value}" if self.result is None else f"%{self.result} = {self.value}"


@dataclass(frozen=True, slots=True)
class DeviceRegion:
    """Statements that run on a device.

    Attributes:
        device: its name.
        body: the statements; none of them is a region.

    Source:
        RFC PTensor, "intel_sycl.gpu-region".
    """

    device: Operand
    body: tuple[Statement, ...]

    def lines(self) -> Iterator[str]:
        """The printed form."""
        yield f"intel_sycl.device_region({self.device}) {{"
        for statement in self.body:
            for line in statement.lines():
                yield f"  {line}"
        yield "}"


Statement: TypeAlias = Let | DeviceRegion


@dataclass(frozen=True, slots=True)
class Lowered:
    """A lowered function.

    Attributes:
        name: of the function.
        parameters: those of the function that was lowered; a tensor comes as a tuple.
        body: the statements.
        results: the names of what it gives.
    """

    name: str
    parameters: tuple[Parameter, ...]
    body: tuple[Statement, ...]
    results: tuple[str, ...]

    def __str__(self) -> str:
        parameters = ", ".join(f"%{p.name}: {_tuple_text(p.type)}" for p in self.parameters)
        lines = [f"func @{self.name}({parameters}) {{"]
        lines += [f"  {line}" for line in body_lines(self.body)]
        lines += [f"  return {', '.join(f'%{name}' for name in self.results)}".rstrip(), "}"]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class LoweredModule:
    """Lowered functions that call each other.

    Attributes:
        functions: each behind those that it calls.
    """

    functions: tuple[Lowered, ...]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.functions))


def body_lines(body: Sequence[Statement]) -> list[str]:
    """The printed form of statements."""
    return [line for statement in body for line in statement.lines()]


def short_name(op: Operation) -> str:
    """What an operation is called once it is on plain tensors."""
    return str(getattr(op, "kind", op.name))


def tensor_text(type: PTensorType) -> str:
    """The type of a plain tensor.

    >>> tensor_text(PTensorType((4, 5), "float32", device="cpu"))
    'tensor<4x5xfloat32>'
    """
    return str(PTensorType(type.shape, type.dtype)).removeprefix("p")


def _tuple_text(type: PTensorType | str) -> str:
    return type if isinstance(type, str) else f"tuple<{tensor_text(type)}, str, int64, int64>"

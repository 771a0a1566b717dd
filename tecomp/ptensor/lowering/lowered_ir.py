"""IR of lowered functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tecomp.dist.partition.placements import Placement
from tecomp.ptensor.function import Parameter, format_result_types
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.types import PTensorType, ValueType


@dataclass(frozen=True, slots=True)
class ValueName:
    """Result of a statement, or an element of the tuple to which a tensor is lowered."""

    name: str
    part: int | None = None

    def __str__(self) -> str:
        return f"%{self.name}" + (f"[{self.part}]" if self.part is not None else "")


@dataclass(frozen=True, slots=True)
class InputNumber:
    """Numeric argument of the operation, by position from 1."""

    position: int

    def __str__(self) -> str:
        return f"${self.position}"


@dataclass(frozen=True, slots=True)
class Literal:
    """Constant value."""

    value: object

    def __str__(self) -> str:
        return repr(self.value)


Operand: TypeAlias = ValueName | InputNumber | Literal


@dataclass(frozen=True, slots=True)
class ScalarCall:
    """Call of a pure function: index arithmetic (`$compute_...`), or a function of plain tensors.

    Attributes:
        function: Name as printed.
        operands: Operands.
        type: dtype and device of a new tensor; not printed.
    """

    function: str
    operands: tuple[Operand, ...]
    type: PTensorType | None = None

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.operands))})"


@dataclass(frozen=True, slots=True)
class Dist:
    """Operation on distributed tensors.

    Attributes:
        function: Name after `dist.`.
        operands: Operands: first the numbers of tensors, then their local parts.
        team: Team; not printed.
        dtype: dtype of a new tensor; not printed.
        placement: Placement of a new tensor; blocks of the first axis if None.

    Source:
        RFC PTensor, "Dist Operations".
    """

    function: str
    operands: tuple[Operand, ...]
    team: Operand
    dtype: str | None = None
    placement: Placement | None = None

    def __str__(self) -> str:
        extra = [] if self.placement is None else [self.placement]
        return f"dist.{self.function}({', '.join(map(str, [*self.operands, *extra]))})"


@dataclass(frozen=True, slots=True)
class RuntimeCall:
    """Call of a function of `tecomp.dist` that implements a `dist` operation.

    Attributes:
        function: Function name.
        team: Team.
        operands: Operands after the team.
        placements: Placements of a new tensor, if not the default.
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
    """Range of numbers from `start` to `stop` with a step."""

    start: str
    stop: str
    step: str

    def __str__(self) -> str:
        return f"slice(${self.start}, ${self.stop}, ${self.step})"

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Operands of the range."""
        return ValueName(self.start), ValueName(self.stop), ValueName(self.step)


@dataclass(frozen=True, slots=True)
class Generic:
    """Elements of a new tensor, each computed from its index.

    Attributes:
        function: Operation that gives the elements.
        operands: Slice, shape, written tensor, and an optional value.
        op: Operation.
        type: Type of the whole tensor.
    """

    function: str
    operands: tuple[Operand, ...]
    op: PTensorOp
    type: PTensorType

    def __str__(self) -> str:
        # A slice specifies the whole range.
        attributes = () if self.function == "arange" else _attributes(self.op)
        args = ", ".join([*map(str, self.operands), *attributes])
        return f"linalg.generic($compute_{self.function}, {args})"


def _attributes(op: PTensorOp) -> tuple[str, ...]:
    """Return the attributes of an operation without its placement and its shape."""
    return tuple([
        f"{name}={value!r}" for name, value in op.attributes
        if name not in ("device", "shape", "team")
    ])


@dataclass(frozen=True, slots=True)
class ImportStatement:
    """Tensor of an external buffer or number.

    Attributes:
        op: Operation.
        operands: Function parameters.
        types: Scalar types of the operands.
        type: Type of the result.
    """

    op: PTensorOp
    operands: tuple[Operand, ...]
    types: tuple[str, ...]
    type: PTensorType

    def __str__(self) -> str:
        inside = ", ".join([*map(str, self.operands), *_attributes(self.op)])
        types = ", ".join(self.types)
        return f"memref.{self.op.name}({inside}): ({types}) -> {tensor_text(self.type)}"


@dataclass(frozen=True, slots=True)
class Compute:
    """Operation on plain tensors, one or several stages of `te`.

    Attributes:
        op: Operation.
        operands: Tensors.
        types: Types of the operands.
        results: Types of the results: a tensor, or a tuple of several.
    """

    op: PTensorOp
    operands: tuple[Operand, ...]
    types: tuple[PTensorType, ...]
    results: tuple[PTensorType, ...]

    def __str__(self) -> str:
        args = [*map(str, self.operands), *(f"{n}={v!r}" for n, v in self.op.attributes)]
        types = ", ".join(map(tensor_text, self.types))
        head = f"linalg.{short_name(self.op)}({', '.join(args)})"
        results = format_result_types([tensor_text(result) for result in self.results])
        return f"{head}: ({types}) -> {results}"


@dataclass(frozen=True, slots=True)
class LoweredLibraryCall:
    """Call of a library function.

    Attributes:
        op: Operation that the function computes.
        operands: Tensors.
        types: Types of the operands.
        results: Types of the results: a tensor, or a tuple of several.
    """

    op: PTensorOp
    operands: tuple[Operand, ...]
    types: tuple[PTensorType, ...]
    results: tuple[PTensorType, ...]

    def __str__(self) -> str:
        types = ", ".join(map(tensor_text, self.types))
        args = [*map(str, self.operands), *(f"{n}={v!r}" for n, v in self.op.attributes)]
        head = f"library_call{{{self.op.library!r}}}({', '.join(args)})"
        results = format_result_types([tensor_text(result) for result in self.results])
        return f"{head}: ({types}) -> {results}"


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """Call of another lowered function; tensors are passed and returned as tuples.

    Attributes:
        function: Function name.
        operands: Tuples and scalars.
        types: Types of the operands before lowering to tuples.
        results: Types of the results before lowering to tuples.
        fresh: For each result, whether it is a distributed tensor that the caller must release.
    """

    function: str
    operands: tuple[Operand, ...]
    types: tuple[ValueType, ...]
    results: tuple[ValueType, ...]
    fresh: tuple[bool, ...]

    def __str__(self) -> str:
        types = ", ".join(map(_tuple_text, self.types))
        results = format_result_types([_tuple_text(result) for result in self.results])
        args = ", ".join(map(str, self.operands))
        return f"func.call @{self.function}({args}): ({types}) -> {results}"


@dataclass(frozen=True, slots=True)
class Together:
    """Lowered parallel tensor: tensor, device, team, and number in the team."""

    operands: tuple[Operand, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.operands))


Expression: TypeAlias = (
    ValueName | InputNumber | Literal | ScalarCall | Slice | Generic | ImportStatement | Compute
    | LoweredLibraryCall | Together
    | Dist | RuntimeCall | FunctionCall
)


@dataclass(frozen=True, slots=True)
class Binding:
    """Binding of a value to a name; without a name if the value is unused.

    Attributes:
        result: Name.
        value: Value.
        printed: Whether the value is computed at run time; otherwise, the name is an alias.
    """

    result: str | None
    value: Expression
    printed: bool = True

    def lines(self) -> Iterator[str]:
        """Yield the lines of the printed form."""
        if self.printed:
            yield f"{self.value}" if self.result is None else f"%{self.result} = {self.value}"


@dataclass(frozen=True, slots=True)
class DeviceRegion:
    """Statements that run on a device.

    Attributes:
        device: Device name.
        body: Statements without nested regions.

    Source:
        RFC PTensor, "intel_sycl.gpu-region".
    """

    device: Operand
    body: tuple[Statement, ...]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the printed form."""
        yield f"intel_sycl.device_region({self.device}) {{"
        for statement in self.body:
            for line in statement.lines():
                yield f"  {line}"
        yield "}"


Statement: TypeAlias = Binding | DeviceRegion


@dataclass(frozen=True, slots=True)
class LoweredFunction:
    """Lowered function.

    Attributes:
        name: Function name.
        parameters: Parameters of the original function; a tensor is passed as a tuple.
        body: Statements.
        results: Names of the results.
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
        functions: Functions, callees first.
    """

    functions: tuple[LoweredFunction, ...]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.functions))


def body_lines(body: Sequence[Statement]) -> list[str]:
    """Return the printed form of statements."""
    return [line for statement in body for line in statement.lines()]


def short_name(op: PTensorOp) -> str:
    """Return the name of an operation on plain tensors."""
    return str(getattr(op, "kind", op.name))


def tensor_text(ptype: PTensorType) -> str:
    """Return the printed type of a plain tensor.

    >>> tensor_text(PTensorType((4, 5), "float32", device="cpu"))
    'tensor<4x5xfloat32>'
    """
    return str(PTensorType(ptype.shape, ptype.dtype)).removeprefix("p")


def _tuple_text(ptype: PTensorType | str) -> str:
    return ptype if isinstance(ptype, str) else f"tuple<{tensor_text(ptype)}, str, int64, int64>"

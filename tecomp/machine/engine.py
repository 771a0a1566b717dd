"""What a core computes with: vectors and caches of a processor, operations of an accelerator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from tecomp.errors import TargetError
from tecomp.ir.language.dtype import DType
from tecomp.machine.fields import (
    Count,
    DTypeName,
    FromHost,
    Matches,
    MemoryName,
    Name,
    OneOf,
    Rate,
    Source,
)
from tecomp.machine.host import (
    DOTS,
    host_caches,
    host_cores,
    host_dots,
    host_vector_bytes,
    host_vector_registers,
)
from tecomp.machine.read import check_fields

TileAxis = Annotated[
    str, Matches(r"[mnk]((//|%)[1-9]\d*)?", "m, n, k or a part of one such as k//4 and k%4")
]


DotName = Annotated[str, OneOf("pair of types", DOTS)]


@dataclass(frozen=True, slots=True)
class Core:
    """What one core computes with, as far as a schedule picks its tiles by it.

    Attributes:
        count: how many such cores there are.
        vector_bytes: of a vector register.
        vector_registers: how many there are.
        cache_bytes: the data caches that a core has or shares, the smallest first.
        source: where the numbers come from.
        vector_operations: on vectors that a core does in a cycle at most; a fused product and sum
            count as two.
        dots: what one instruction multiplies and adds up to 32 bits, as `te.dot` does, by the
            types of its factors: `uint8*int8`, `int8*int8`, `uint8*uint8`, `bfloat16*bfloat16`.

    >>> core = Core(4, 32, 16, (32768, 524288), source="a manual", dots=("uint8*int8",))
    >>> core.count, core.vector_bytes, core.vector_registers, core.cache_bytes
    (4, 32, 16, (32768, 524288))
    >>> core.vector_operations, core.dots, core.source
    (1, ('uint8*int8',), 'a manual')
    """

    count: Annotated[Count, FromHost(host_cores)]
    vector_bytes: Annotated[Count, FromHost(host_vector_bytes)]
    vector_registers: Annotated[Count, FromHost(host_vector_registers)]
    cache_bytes: Annotated[tuple[Count, ...], FromHost(host_caches)]
    source: Source = ""
    dots: Annotated[tuple[DotName, ...], FromHost(host_dots)] = ()
    vector_operations: Count = 1

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def second_cache(self) -> int:
        """Bytes of the second cache, or of the only one.

        >>> Core(2, 32, 16, (32768, 524288)).second_cache, Core(2, 32, 16, (32768,)).second_cache
        (524288, 32768)
        """
        return self.cache_bytes[:2][-1]

    def lanes(self, dtype: str) -> int:
        """Values of a type that one vector holds.

        >>> Core(2, 32, 16, (32768,)).lanes("float32")
        8
        """
        return max(self.vector_bytes // DType(dtype).bytes, 1)


@dataclass(frozen=True, slots=True)
class MatmulUnit:
    """A unit that does c[m, n] += a[m, k] * b[k, n] for tiles of one size.

    Attributes:
        kind: `matmul`.
        name: what the description calls it.
        m: rows of a and c.
        n: columns of b and c.
        k: columns of a, rows of b.
        inputs: types that a and b may have, both the same.
        accumulator: type of c.
        a: axes of a tile of a in memory, the innermost last.
        b: the same for b.
        c: the same for c.
        cycles: of one tile operation for each fidelity, the usual one first.
        memory: where the operands are.
        source: where the numbers come from.
        instances: such units in one core.
        modes: which of the fidelities is the usual one for a type of a and b, if not the first.

    >>> from tecomp import Target
    >>> unit = Target.load("tensix_wh").engine["matmul"]
    >>> unit.kind, unit.name, (unit.m, unit.n, unit.k), unit.instances, unit.memory
    ('matmul', 'matmul', (32, 32, 32), 1, 'l1')
    >>> unit.inputs, unit.accumulator, unit.modes == {}
    (('bfloat16', 'float16'), 'float32', True)
    >>> dict(unit.cycles)
    {'hifi4': 64.0, 'hifi3': 48.0, 'hifi2': 32.0, 'lofi': 16.0}
    >>> unit.a, unit.b, unit.c, len(unit.source) > 0
    (('m', 'k'), ('k', 'n'), ('m', 'n'), True)
    """

    kind: Literal["matmul"]
    name: Name
    m: Count
    n: Count
    k: Count
    inputs: tuple[DTypeName, ...]
    accumulator: DTypeName
    a: tuple[TileAxis, ...]
    b: tuple[TileAxis, ...]
    c: tuple[TileAxis, ...]
    cycles: Mapping[str, Rate]
    memory: MemoryName
    source: Source
    instances: Count = 1
    modes: Mapping[DTypeName, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for dtype, mode in self.modes.items():
            if dtype not in self.inputs or mode not in self.cycles:
                raise TargetError(
                    f"unit `{self.name}` has `{dtype} = \"{mode}\"` in modes; they are for its "
                    f"inputs {', '.join(self.inputs)} and among its cycles "
                    f"{', '.join(self.cycles)}"
                )


@dataclass(frozen=True, slots=True)
class VectorUnit:
    """A unit that does one operation on all lanes of a vector.

    Attributes:
        kind: `vector`.
        name: what the description calls it.
        width_bytes: of one vector.
        types: that its lanes may have.
        cycles: of one vector operation: `default`, and those of other operations by their name in
            the IR, such as `exp`.
        memory: where the operands are.
        source: where the numbers come from.
        instances: such units in one core.

    >>> from tecomp import Target
    >>> unit = Target.load("tensix_wh").engine["sfpu"]
    >>> unit.kind, unit.name, unit.width_bytes, unit.types, unit.instances, unit.memory
    ('vector', 'sfpu', 128, ('float32', 'bfloat16', 'float16', 'int32'), 1, 'dst')
    >>> unit.cycles["default"], len(unit.source) > 0
    (2.0, True)
    """

    kind: Literal["vector"]
    name: Name
    width_bytes: Count
    types: tuple[DTypeName, ...]
    cycles: Mapping[str, Rate]
    memory: MemoryName
    source: Source
    instances: Count = 1

    def lanes(self, dtype: str) -> int:
        """Values of a type that one vector holds.

        Raises:
            TypeMismatchError: there is no such type.

        >>> from tecomp import Target
        >>> Target.load("tensix_wh").engine["sfpu"].lanes("float32")
        32
        """
        return max(self.width_bytes // DType(dtype).bytes, 1)


Unit = MatmulUnit | VectorUnit

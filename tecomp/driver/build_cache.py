"""Cache of built kernels, keyed by everything they depend on."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from itertools import tee
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Protocol

from tecomp.codegen.llvm.code_cache import (
    Recent,
    Store,
    cached_code,
    code_key,
    current_store,
    digest,
    made_by,
)
from tecomp.codegen.llvm.compiled import Compiled, Interface
from tecomp.codegen.llvm.ir_builder import Options
from tecomp.compute.tensor import Tensor
from tecomp.ir.extern.binding import bind
from tecomp.ir.extern.registry import ArrayType, Callee, NumberType
from tecomp.ir.nodes.expr import Binary, BinOp, Call, Cast, CmpOp, Compare, Const, Not, Select, Var
from tecomp.ir.nodes.stmt import Buffer, Convention, Extent, PrimFunc, SeqStmt
from tecomp.ir.traversal.serialization import NotPlainError, Word, decode, encode
from tecomp.lowering.stages.index_expressions import strides_of
from tecomp.machine.components import Rates
from tecomp.machine.descriptor import Target
from tecomp.progress import doing, tell
from tecomp.scheduling.schedule import Schedule
from tecomp.source_locations import Location

if TYPE_CHECKING:
    from tecomp.lowering.pipeline import Lowered

PACKAGE = Path(__file__).parents[1]

DUMP_FOLDER = "TECOMP_DUMP"
"""Environment variable: folder in which every build writes its page."""


def fingerprint(package: Path) -> str:
    """A name for the source files below a folder as they are now: where, how long, how old.

    A version would not do: a checkout changes without it.
    """
    return sha256("\n".join(_files(str(package), "")).encode()).hexdigest()


@cache
def schedules() -> str:
    """A name for the source files of the library of schedules, which are part of the compiler."""
    found = find_spec("tecomp.schedules")
    assert found is not None
    return fingerprint(Path(str(found.origin)).parent)


@cache
def _isl() -> str:
    """Return a name for the installed isl binding; importing it would take 20 ms."""
    found = find_spec("islpy")
    assert found is not None
    with os.scandir(Path(str(found.origin)).parent) as files:
        states = [(item.name, item.stat()) for item in files if item.is_file()]
    return digest([(name, state.st_size, state.st_mtime_ns) for name, state in sorted(
        states, key=lambda each: each[0])])


def _files(folder: str, place: str) -> Iterator[str]:
    with os.scandir(folder) as found:
        for item in sorted(found, key=lambda item: item.name):
            name = f"{place}/{item.name}"
            if item.name.endswith(".py"):
                state = item.stat()
                yield f"{name} {state.st_size} {state.st_mtime_ns}"
            elif item.is_dir() and item.name != "__pycache__":
                yield from _files(item.path, name)


# Taken when the compiler is loaded: the files may have changed since when it is first used.
SOURCES = fingerprint(PACKAGE)


FACES = (
    PrimFunc, SeqStmt, Buffer, Var, Const, Binary, BinOp, Call, Cast, CmpOp, Compare, Not, Select,
    Interface, Callee, ArrayType, NumberType, Convention,
)  # fmt: skip
"""What functions without statements, parameters and their extents are made of."""

Signature = tuple[Buffer | Var, ...]
Shapes = tuple[tuple[Extent, ...] | None, ...]


@dataclass(frozen=True, slots=True)
class Build:
    """What `tecomp.build` was asked for.

    Attributes:
        schedule: with the decisions as they are now; later calls do not change it.
        args: tensors and size variables, in the order of the kernel's parameters.
        name: of the kernel.
        target: the machine; None where every one will do.
        options: how code is generated.
        binds: what says the strides of arguments.
        verify: whether the interpreter checks each call.
    """

    schedule: Schedule
    args: Sequence[object]
    name: str
    target: Target | None
    options: Options
    binds: Mapping[Tensor, Buffer] = field(default_factory=dict)
    verify: bool = False

    def lowered(self) -> Lowered:
        """The function after each pass; the last one puts buffers into the target's memories.

        Raises:
            LowerError: the schedule has no code that keeps its meaning.
            TargetError: the target cannot run the function.
        """
        # Import lazily: a kernel from the cache does not need the passes.
        pipeline = import_module("tecomp.lowering.pipeline")
        lowered: Lowered = pipeline.lower_all(
            self.schedule, self.args, self.name, binds=self.binds)
        if self.target is None:
            return lowered
        checks = import_module("tecomp.driver.memory_check")
        lowered = checks.in_memories(self.schedule, self.args, lowered, self.target,
                                     guards=self.options.check_bounds)
        return lowered


@dataclass(frozen=True, slots=True)
class Made:
    """A built schedule.

    Attributes:
        compiled: its code.
        signature: the parameters in the shapes that callers pass.
        logical: the shapes of those that are arrays in the computation, in the same variables.
    """

    compiled: Compiled
    signature: Signature
    logical: Shapes


class Asked(Protocol):
    """What a kernel is built from."""

    @property
    def options(self) -> Options:
        """How code is generated."""

    def lowered(self) -> Lowered:
        """The function after each pass."""


MADE: Recent[Made] = Recent()


def make(build: Build, lowered: Lowered | None = None) -> tuple[Made, Lowered | None]:
    """The code of a schedule, and its lowered functions where they had to be made for it.

    Args:
        build: what is asked for.
        lowered: its functions, where they are there already.

    Raises:
        TecompError: lowering, the target or code generation refuses it.
    """
    tried, keys = tee(program_keys(build) if current_store() is not None else ())
    if lowered is None and (found := found_by(tried, build)) is not None:
        tell("build %s: found, as it was built before", build.name)
        return found, None
    with doing(f"build {build.name}"):
        if lowered is None:
            tell("build %s: not built before", build.name)
            lowered = build.lowered()
        compiler = import_module("tecomp.codegen.emit.compile")
        compiled: Compiled = compiler.compile_function(lowered.final, **asdict(build.options))
    made = Made(compiled, _signature(build.args, lowered), _logical(lowered))
    keep([*keys], made)
    return made, lowered


def found_by(keys: Iterable[str], asked: Asked) -> Made | None:
    """What was made under one of these names, by this process or another one.

    Args:
        keys: as `keys_of` gives them; no more are asked for than it takes.
        asked: what says the rest, if somebody asks for more than the code.
    """
    store = current_store()
    for key in keys:
        found = MADE.get(key)
        if found is None and store is not None and (loaded := _load(store, key, asked)):
            found = _kept(key, loaded)
        if found is not None:
            return found
    return None


def keep(keys: Sequence[str], made: Made) -> None:
    """Keep what was made under the name that says enough of it, if it has names."""
    store = current_store()
    if store is None or not keys:
        return
    # The second key has the places in the user's files in it.
    key = keys[-1 if made.compiled.interface.sites else 0]
    store.put(key, _saved(made))
    _kept(key, made)


def discard(keys: Iterable[str]) -> None:
    """Remove what is kept under these names, as no kernel can be made of it."""
    store = current_store()
    for key in keys:
        MADE.remove(key)
        if store is not None:
            store.remove(key)


def _kept(key: str, made: Made) -> Made:
    """The same, which is found again if it cannot call other functions the next time."""
    return made if made.compiled.interface.calls else MADE.put(key, made)


def program_keys(build: Build) -> Iterator[str]:
    """Names of the program: without, and with the places where it was written; or none."""
    if not isinstance(build.schedule, Schedule) or not isinstance(build.args, list | tuple):
        return
    yield from keys_of((
        build.schedule.state, tuple(build.args), build.name, build.target, build.options,
        strides_of(build.binds, build.args, "build"),
    ))


def keys_of(asked: object, *makers: str) -> Iterator[str]:
    """Names of what is made of something: without, and with the places where it was written.

    There are none where it is not made of plain parts. `makers` say who makes it, besides the
    compiler itself.
    """
    places: list[Location] = []

    def place(location: Location) -> Word:
        places.append(location)
        return "place"

    try:
        # Code does not depend on rates, which may be measured again.
        words = encode(asked, {Location: place, Rates: lambda _: encode(None)[0]})
    except NotPlainError:
        return
    compiler = [SOURCES, _isl(), sys.implementation.cache_tag, *made_by(), *makers]
    first = digest(words, compiler)
    yield first
    if places:
        yield digest(first, [(location.file, location.line) for location in places])


def _signature(args: Sequence[object], lowered: Lowered) -> Signature:
    # Integers are 64 bits wide in the function, but were declared with a type of their own.
    return tuple(
        Var(param.name, arg.dtype) if isinstance(param, Var) and isinstance(arg, Var) else param
        for param, arg in zip(lowered.signature.params, args, strict=True)
    )


def _logical(lowered: Lowered) -> Shapes:
    params = lowered.functions["nest"].params
    return tuple(param.shape if isinstance(param, Buffer) else None for param in params)


def _saved(made: Made) -> bytes:
    face = made.compiled.interface
    code = code_key(made.compiled.source, face.entry)
    words = encode((
        face.head, face.written, face.entry, face.sites, face.is_parallel, face.calls,
        made.signature, made.logical, code,
    ))  # fmt: skip
    return json.dumps(words).encode()


def _load(store: Store, key: str, asked: Asked) -> Made | None:
    found = store.read(key, _described)
    if found is None:
        return None
    face, signature, logical, code = found
    linked = cached_code(code, face.entry, bind(face.calls))
    if linked is None:
        return None
    compiled = Compiled(face, linked, asked.options, lambda: asked.lowered().final)
    return Made(compiled, signature, logical)


def _described(content: bytes) -> tuple[Interface, Signature, Shapes, str]:
    """What is known of the code of an entry, and the key of the code.

    Raises:
        Exception: of any kind, if `_saved` did not write it.
    """
    head, written, entry, sites, is_parallel, calls, signature, logical, code = decode(
        json.loads(content), FACES
    )
    face = Interface(head, written, entry, sites, is_parallel, calls)
    check_face(face)
    check_members(signature, Buffer | Var)
    check_members(logical, tuple | None)
    if not len(head.params) == len(signature) == len(logical) or type(code) is not str:
        raise ValueError("parameters or the key of the code are missing")
    return face, signature, logical, code


def check_face(face: Interface) -> None:
    """Check the types of a decoded interface, which the decoder makes of any values.

    Raises:
        TypeError: one of them is wrong.
    """
    check_members((face.head,), PrimFunc)
    check_members((face.entry,), str)
    check_members((face.is_parallel,), bool)
    check_members(face.head.params, Buffer | Var)
    check_members(face.written, Var)
    check_members(face.sites, str)
    check_members(face.calls, tuple)
    for name, callee in face.calls:
        check_members((name,), str)
        check_members((callee,), Callee)


def check_members(values: object, kind: type | UnionType) -> None:
    """Check that a value is a tuple of values of a type.

    Raises:
        TypeError: it is not.
    """
    if type(values) is not tuple or not all(isinstance(each, kind) for each in values):
        raise TypeError(f"expected a tuple of {kind}")


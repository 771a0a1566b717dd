"""Cache of built kernels, keyed by everything that a kernel depends on."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property, partial
from hashlib import sha256
from importlib.util import find_spec
from itertools import tee
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, TypeVar

from tecomp.caches import LRUCache
from tecomp.codegen.llvm.code_cache import (
    Store,
    code_key,
    compiler_fingerprint,
    current_store,
    digest,
    lookup_code,
)
from tecomp.codegen.llvm.compiled import (
    CompiledFunction,
    KernelInterface,
    LogicalShapes,
    Signature,
)
from tecomp.codegen.llvm.ir_builder import Options
from tecomp.compute.tensor import Tensor
from tecomp.driver.auto_schedule import Choices, SchedulingProblem, Value, build_default_schedule
from tecomp.errors import safe_str
from tecomp.ir.extern.binding import bind
from tecomp.ir.extern.registry import ArrayType, CallSignature, NumberType
from tecomp.ir.nodes.expr import Binary, BinOp, Call, Cast, CmpOp, Compare, Const, Not, Select, Var
from tecomp.ir.nodes.stmt import Buffer, CallingConvention, PrimFunc, SeqStmt
from tecomp.ir.traversal.serialization import NotSerializableError, Word, decode, encode
from tecomp.lowering.stages.index_expressions import offsets_of, strides_of
from tecomp.machine.components import Rates
from tecomp.machine.descriptor import Target
from tecomp.progress import log_debug, log_duration
from tecomp.scheduling.schedule import Schedule
from tecomp.scheduling.split_schedule import with_arguments
from tecomp.source_locations import Location

if TYPE_CHECKING:
    from tecomp.lowering.pipeline import LoweringResult

PACKAGE = Path(__file__).parents[1]

DUMP_FOLDER = "TECOMP_DUMP"
"""Environment variable with the folder to which every build writes an HTML page."""


def fingerprint(package: Path) -> str:
    """Return a hash of the paths, sizes and modification times of the source files in a folder.

    A version number is not sufficient, because files of a checkout change without it.
    """
    return sha256("\n".join(_files(str(package), "")).encode()).hexdigest()


@cache
def schedules() -> str:
    """Return the fingerprint of the schedule library, whose sources affect built kernels."""
    found = find_spec("tecomp.schedules")
    assert found is not None
    return fingerprint(Path(str(found.origin)).parent)


@cache
def _isl() -> str:
    """Return a hash of the installed isl binding without importing it, which takes 20 ms."""
    found = find_spec("islpy")
    assert found is not None
    with os.scandir(Path(str(found.origin)).parent) as files:
        states = [(item.name, item.stat()) for item in files if item.is_file()]
    return digest([(name, state.st_size, state.st_mtime_ns) for name, state in sorted(
        states, key=lambda entry: entry[0])])


def _files(folder: str, prefix: str) -> Iterator[str]:
    with os.scandir(folder) as found:
        for item in sorted(found, key=lambda item: item.name):
            name = f"{prefix}/{item.name}"
            if item.name.endswith(".py"):
                state = item.stat()
                yield f"{name} {state.st_size} {state.st_mtime_ns}"
            elif item.is_dir() and item.name != "__pycache__":
                yield from _files(item.path, name)


# Compute the fingerprint at import time: the files may change before the first build.
SOURCES = fingerprint(PACKAGE)


FACES = (
    PrimFunc, SeqStmt, Buffer, Var, Const, Binary, BinOp, Call, Cast, CmpOp, Compare, Not, Select,
    KernelInterface, CallSignature, ArrayType, NumberType, CallingConvention,
)  # fmt: skip
"""Classes that may occur in a serialized interface: function heads, parameters and extents."""


@dataclass(frozen=True)
class BuildRequest:
    """Request of `tecomp.build`, with or without a schedule.

    Attributes:
        program: Copy of the schedule, which later primitive calls do not change; or output tensor
            or tensors, which the automatic scheduler schedules.
        args: Tensors and size variables, in the parameter order of the kernel.
        name: Name of the kernel.
        target: Target of the kernel; None for any target.
        options: Code generation options.
        strided_buffers: Buffers with the strides and offsets of arguments.
        verify: Whether the interpreter checks each call.
        bounds: Expected upper bounds of symbolic sizes, for the automatic scheduler.
        choices: Values of knobs that the tuning database records for the automatic scheduler.
    """

    program: Schedule | Tensor | Sequence[Tensor]
    args: Sequence[object]
    name: str
    target: Target | None
    options: Options
    strided_buffers: Mapping[Tensor, Buffer] = field(default_factory=dict)
    verify: bool = False
    bounds: tuple[tuple[Var, int], ...] = ()
    choices: tuple[tuple[str, Value], ...] = ()

    @property
    def is_scheduled(self) -> bool:
        """Whether the request has a schedule."""
        return isinstance(self.program, Schedule)

    @cached_property
    def schedule(self) -> Schedule:
        """Schedule of the request, or the automatic schedule of its outputs."""
        if isinstance(self.program, Schedule):
            return self.program
        problem = self.problem
        found = build_default_schedule(
            problem.outputs, problem.target, strides=problem.strides, bounds=problem.bounds,
            choices=None if Choices.is_active() else dict(self.choices),
        )
        return copy(with_arguments(found, self.args))

    @property
    def problem(self) -> SchedulingProblem:
        """Arguments of the automatic scheduler for outputs without a schedule."""
        assert self.target is not None
        assert not isinstance(self.program, Schedule)
        strides = strides_of(self.strided_buffers, self.args, "build")
        known = {
            arg: stride for arg, stride in zip(self.args, strides, strict=False)
            if isinstance(arg, Tensor) and stride is not None
        }
        outputs = (self.program,) if isinstance(self.program, Tensor) else tuple(self.program)
        return SchedulingProblem(
            outputs, self.target, strides=known, bounds=dict(self.bounds))

    def scheduled(self) -> BuildRequest:
        """Return the request with its schedule; search the automatic schedule if necessary."""
        return self if self.is_scheduled else replace(
            self, program=self.schedule, bounds=(), choices=())

    def lowered(self) -> LoweringResult:
        """Return the function after each pass, including the placement in memories of the target.

        Raises:
            LowerError: If the schedule cannot be lowered without changing its meaning.
            TargetError: If the target cannot run the function.
        """
        # Import lazily: a kernel from the cache does not need the passes.
        import tecomp.lowering.pipeline as pipeline
        lowered: LoweringResult = pipeline.lower_all(
            self.schedule, self.args, self.name, binds=self.strided_buffers)
        if self.target is None:
            return lowered
        import tecomp.driver.memory_check as checks
        lowered = checks.place_in_memories(self.schedule, self.args, lowered, self.target,
                                     guards=self.options.check_bounds)
        return lowered


COMPILED: LRUCache[str, CompiledFunction] = LRUCache("driver.kernels")
BuiltKernel = TypeVar("BuiltKernel")


def get_or_build(
    request: BuildRequest, lowered: LoweringResult | None = None
) -> tuple[CompiledFunction, LoweringResult | None]:
    """Return the code of a schedule from the cache, or lower and compile the schedule.

    Args:
        request: Build request.
        lowered: Functions after each pass, if already available; the cache is then not searched.

    Returns:
        The code, and the lowered functions or None if the code came from the cache.

    Raises:
        TecompError: If lowering, a check of the target or code generation fails.
    """
    lookup_keys, keys = tee(program_keys(request) if current_store() is not None else ())
    if lowered is None and (found := lookup(lookup_keys, request)) is not None:
        log_debug("build %s: found, as it was built before", request.name)
        return found, None
    with log_duration(f"build {safe_str(request.name)}"):
        if lowered is None:
            log_debug("build %s: not built before", request.name)
            lowered = request.lowered()
        import tecomp.codegen.emit.compile as compiler
        compiled: CompiledFunction = compiler.compile_function(
            lowered.final, **asdict(request.options)
        )
    compiled.signature = _signature(request.args, lowered)
    compiled.logical = _logical(lowered)
    store_build([*keys], compiled)
    return compiled, lowered


def build_kernel(
    request: BuildRequest,
    kernel_of: Callable[[CompiledFunction, LoweringResult | None], BuiltKernel],
    make_code: Callable[[BuildRequest, LoweringResult | None],
    tuple[CompiledFunction, LoweringResult | None]] = get_or_build,
) -> BuiltKernel:
    """Return the kernel of a schedule; rebuild the code if its cache entry is unusable.

    The content of an entry can be valid in its form and still not fit the request. A kernel
    cannot be constructed from such an entry, which is removed.

    Args:
        request: Build request.
        kernel_of: Function that constructs the kernel.
        make_code: Function like `get_or_build`, which does not search the cache for given
            functions.

    Raises:
        TecompError: If lowering, a check of the target or code generation fails.
    """
    compiled, lowered = make_code(request, None)
    if lowered is None:
        kernel = kernel_or_none(program_keys(request), lambda: kernel_of(compiled, None))
        if kernel is not None:
            return kernel
        compiled, lowered = make_code(request, request.lowered())
    return kernel_of(compiled, lowered)


def build_unscheduled(
    request: BuildRequest, page: Path | None,
    kernel_of: Callable[[BuildRequest, CompiledFunction, LoweringResult | None], BuiltKernel],
    make_code: Callable[..., tuple[CompiledFunction, LoweringResult | None]],
) -> BuiltKernel:
    """Build a kernel of unscheduled outputs; search a schedule only if no kernel is cached.

    Args:
        request: Build request.
        page: Page that shows the build, or None; the cache is not searched for a page.
        kernel_of: Function that constructs the kernel of a request.
        make_code: Function that builds the code of a request, with its `schedule` and `page`.
    """
    is_processor = request.target is not None and request.target.core is not None
    # For targets with scratchpads, layouts are part of the schedule, so the cache cannot be keyed
    # by the unscheduled program.
    is_kept = page is None and is_processor and current_store() is not None
    lookup_keys, keys = tee(program_keys(request) if is_kept else ())
    found = lookup(lookup_keys, request)
    if found is not None:
        log_debug("build %s: found, as it was built before", request.name)
        kernel = kernel_or_none(program_keys(request), lambda: kernel_of(request, found, None))
        if kernel is not None:
            return kernel

    scheduled = request.scheduled()

    def stored(compiled: CompiledFunction, lowered: LoweringResult | None) -> BuiltKernel:
        kernel = kernel_of(scheduled, compiled, lowered)
        store_build([*keys], compiled)
        return kernel

    return build_kernel(
        scheduled, stored, partial(make_code, schedule=scheduled.schedule, page=page))


def kernel_or_none(keys: Iterable[str], kernel_of: Callable[[], BuiltKernel]) -> BuiltKernel | None:
    """Return a kernel with code from the cache; on failure remove the entries, return None."""
    try:
        return kernel_of()
    except Exception:  # the content of an entry can cause any exception
        discard(keys)
        return None


def lookup(keys: Iterable[str], request: BuildRequest) -> CompiledFunction | None:
    """Return the cached result for the first key that has one, also from other processes.

    Args:
        keys: Keys from `keys_of`, consumed lazily.
        request: Build request, from which the cached kernel can compute its lowered functions.
    """
    store = current_store()
    for key in keys:
        found = COMPILED.get(key, None)
        if found is None and store is not None and (loaded := _load(store, key, request)):
            found = _cache_code(key, loaded)
        if found is not None:
            return found
    return None


def store_build(keys: Sequence[str], compiled: CompiledFunction) -> None:
    """Store a result in the cache, under the least specific key that is sufficient."""
    store = current_store()
    if store is None or not keys:
        return
    # Code that reports source locations needs the second key, which includes the locations.
    key = keys[-1 if compiled.interface.sites else 0]
    store.put(key, _encode_entry(compiled))
    _cache_code(key, compiled)


def discard(keys: Iterable[str]) -> None:
    """Remove the entries of the given keys, after an entry proved to be unusable."""
    store = current_store()
    for key in keys:
        COMPILED.remove(key)
        if store is not None:
            store.remove(key)


def _cache_code(key: str, compiled: CompiledFunction) -> CompiledFunction:
    """Add a result to the cache of the process, unless it is bound to external functions.

    External functions may be registered again, so such a result must be bound again by each build.
    """
    return compiled if compiled.interface.calls else COMPILED.keep(key, compiled)


def program_keys(request: BuildRequest) -> Iterator[str]:
    """Yield the cache keys without and with source locations; none if it is not encodable."""
    program, args = request.program, request.args
    if not isinstance(args, list | tuple):
        return
    strides, offsets = (
        strides_of(request.strided_buffers, args, "build"),
        offsets_of(request.strided_buffers, args),
    )
    if isinstance(program, Schedule):
        yield from keys_of((
            program.state, tuple(args), request.name, request.target, request.options, strides,
            offsets,
        ))
    else:
        outputs = (program,) if isinstance(program, Tensor) else tuple(program)
        yield from keys_of((
            "unscheduled", outputs, tuple(args), request.name, request.target, request.options,
            strides, offsets, request.bounds, request.choices,
        ), schedules())


def keys_of(content: object, *makers: str) -> Iterator[str]:
    """Yield the cache keys of a request, without and with the source locations in it.

    There are no keys if the request contains objects that cannot be encoded.

    Args:
        content: Request.
        makers: Fingerprints of code that affects the result, in addition to the compiler.
    """
    locations: list[Location] = []

    def place(location: Location) -> Word:
        locations.append(location)
        return "place"

    try:
        # Exclude rates from the key: they may be measured again, and code does not depend on them.
        words = encode(content, {Location: place, Rates: lambda _: encode(None)[0]})
    except NotSerializableError:
        return
    compiler = [SOURCES, _isl(), sys.implementation.cache_tag, *compiler_fingerprint(), *makers]
    first = digest(words, compiler)
    yield first
    if locations:
        yield digest(first, [(location.file, location.line) for location in locations])


def _signature(args: Sequence[object], lowered: LoweringResult) -> Signature:
    # Scalar integers are int64 in the function; the signature has the declared dtypes.
    return tuple([
        replace(param, dtype=arg.dtype)
        if isinstance(param, Var) and isinstance(arg, Var) else param
        for param, arg in zip(lowered.signature.params, args, strict=True)
    ])


def _logical(lowered: LoweringResult) -> LogicalShapes:
    params = lowered.functions["nest"].params
    return tuple([param.shape if isinstance(param, Buffer) else None for param in params])


def _encode_entry(compiled: CompiledFunction) -> bytes:
    iface = compiled.interface
    code = code_key(compiled.source, iface.entry)
    words = encode((
        iface.head, iface.written, iface.entry, iface.sites, iface.is_parallel, iface.calls,
        compiled.signature, compiled.logical, code,
    ))  # fmt: skip
    return json.dumps(words).encode()


def _load(store: Store, key: str, request: BuildRequest) -> CompiledFunction | None:
    found = store.read(key, _decode_entry)
    if found is None:
        return None
    iface, signature, logical, code = found
    linked = lookup_code(code, iface.entry, bind(iface.calls))
    if linked is None:
        return None
    return CompiledFunction(
        iface, linked, request.options, lambda: request.lowered().final, None, signature, logical)


def _decode_entry(content: bytes) -> tuple[KernelInterface, Signature, LogicalShapes, str]:
    """Decode a cache entry to interface, signature, logical shapes and key of the code.

    Raises:
        Exception: If the entry was not written by `_encode_entry`; of any class.
    """
    head, written, entry, sites, is_parallel, calls, signature, logical, code = decode(
        json.loads(content), FACES
    )
    iface = KernelInterface(head, written, entry, sites, is_parallel, calls)
    check_face(iface)
    check_members(signature, Buffer | Var)
    check_members(logical, tuple | None)
    if not len(head.params) == len(signature) == len(logical) or type(code) is not str:
        raise ValueError("parameters or the key of the code are missing")
    if not iface.entry:
        raise ValueError("the entry function has no name")  # LLVM would abort the process
    return iface, signature, logical, code


def check_face(iface: KernelInterface) -> None:
    """Raise if a decoded interface has fields of wrong types, which the decoder does not check.

    Raises:
        TypeError: If a field has a wrong type.
    """
    check_members((iface.head,), PrimFunc)
    check_members((iface.head.name, iface.entry), str)
    check_members((iface.is_parallel,), bool)
    check_members(iface.head.params, Buffer | Var)
    check_members(iface.written, Var)
    check_members(iface.sites, str)
    check_members(iface.calls, tuple)
    for name, callee in iface.calls:
        check_members((name,), str)
        check_members((callee,), CallSignature)


def check_members(values: object, kind: type | UnionType) -> None:
    """Raise if a value is not a tuple of instances of a type.

    Raises:
        TypeError: If the value is not such a tuple.
    """
    if type(values) is not tuple or not all(isinstance(value, kind) for value in values):
        raise TypeError(f"expected a tuple of {kind}")


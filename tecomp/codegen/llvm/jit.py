"""LLVM modules to machine code: the only place that knows llvmlite."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from tecomp.codegen.llvm.ir_builder import Source
from tecomp.errors import InternalError
from tecomp.fork_gate import WorkLock, add_leaf, no_fork
from tecomp.ir.extern.binding import NOTHING, Outside
from tecomp.machine.host import cpu_level
from tecomp.progress import doing

Entry = Callable[[Any], int]

_LINKED_BY_ONE = 32


@dataclass(frozen=True, slots=True)
class Machine:
    """What code is generated for, in LLVM's names; the default is the machine at hand."""

    triple: str = ""
    cpu: str = ""
    features: str = ""


@dataclass(frozen=True, slots=True)
class Linked:
    """Machine code in memory; it stays there as long as this object does."""

    entry: Entry
    keep: tuple[Any, ...]


@cache
def _llvm() -> Any:
    # 60 MB that only those need who compile; so not at the top of the file.
    with no_fork:
        binding: Any = importlib.import_module("llvmlite.binding")
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
    # Objects of LLVM may be freed at any time, by any thread.
    add_leaf(partial(_lock_of, importlib.import_module("llvmlite.binding.ffi")))
    return binding


def _lock_of(ffi: Any) -> Any:
    """The lock that llvmlite holds while it calls LLVM."""
    return ffi.lib._lock._lock


@cache
def llvm_version() -> str:
    """The versions of LLVM and of what binds it."""
    numbers = (str(number) for number in _llvm().llvm_version_info)
    return f"{importlib.import_module('llvmlite').__version__} {'.'.join(numbers)}"


@cache
def _every_llvm() -> Any:
    binding = _llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding


@cache
def host() -> Machine:
    """Return the host, or the level of it that `TECOMP_CPU` names.

    The features of the host are listed, because a hypervisor may mask some that its name implies.
    """
    llvm, level = _llvm(), cpu_level()
    if level is not None:
        return Machine(llvm.get_process_triple(), level)
    features = llvm.get_host_cpu_features().flatten()
    return Machine(llvm.get_process_triple(), llvm.get_host_cpu_name(), features)


def _target_machine(machine: Machine, effort: int = 2) -> Any:
    if not machine.triple:
        machine = host()
    llvm = _llvm() if machine.triple == host().triple else _every_llvm()
    try:
        target = llvm.Target.from_triple(machine.triple)
    except RuntimeError as error:
        raise InternalError(f"LLVM knows no machine `{machine.triple}`: {error}") from error
    # The small code model: the default of a JIT loads every address as 64 bits.
    return target.create_target_machine(
        cpu=machine.cpu, features=machine.features, opt=effort, codemodel="small", reloc="pic"
    )


def _parsed(text: str, target_machine: Any) -> Any:
    llvm = _llvm()
    try:
        # In a context of its own: constants and types stay as long as that.
        module = llvm.parse_assembly(text, llvm.create_context())
        module.triple = target_machine.triple
        module.data_layout = str(target_machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"LLVM refuses the generated code: {error}\n{text}") from error
    return module


@dataclass(slots=True)
class _Tools:
    """What compiles for a machine; LLVM forgets some of it in memory whenever a new one is made.

    Attributes:
        target_machine: LLVM's code generator.
        builders: what makes LLVM's pipelines, for modules with plain loops and for others.
    """

    target_machine: Any
    builders: dict[bool, Any] = field(default_factory=dict)


_IDLE: dict[tuple[Machine, int], list[_Tools]] = {}


@contextmanager
def _tools(machine: Machine, effort: int = 2) -> Iterator[_Tools]:
    """Tools that no other thread has until they are given back."""
    with no_fork:
        idle = _IDLE.setdefault((machine, effort), [])
        try:
            tools = idle.pop()
        except IndexError:
            tools = _Tools(_target_machine(machine, effort))
        yield tools
        idle.append(tools)


def _optimised(source: Source, tools: _Tools) -> Any:
    """The module after the passes that pay: registers out of memory, and loops where marked.

    Vectors and unrolling are explicit by now: the passes that look for them cost most of the time
    and find nothing, but where the schedule left loops plain.
    """
    module = _parsed(source.text, tools.target_machine)
    is_plain = bool(source.plain_loops)
    if is_plain not in tools.builders:
        tools.builders[is_plain] = _pass_builder(tools.target_machine, is_plain=is_plain)
    builder = tools.builders[is_plain]
    if is_plain:
        _keep_apart(module, source)
        with _disposed(builder.getModulePassManager()) as passes:
            passes.run(module, builder)
    else:
        _tidied(module, source, builder)
    for function in module.functions:
        if function.name in source.handed_over:
            # Only now: the passes above may say on the terminal that they skip such a function.
            function.add_function_attribute("noinline")
            function.add_function_attribute("optnone")
    return module


def _pass_builder(target_machine: Any, *, is_plain: bool) -> Any:
    llvm = _llvm()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = is_plain
    options.loop_interleaving = is_plain
    options.slp_vectorization = False
    options.loop_unrolling = is_plain
    return llvm.create_pass_builder(target_machine, options)


def _keep_apart(module: Any, source: Source) -> None:
    """Keep the bodies of loops out of line: that their arguments do not overlap would be lost."""
    for function in module.functions:
        if not function.is_declaration and function.name not in source.inlined:
            function.add_function_attribute("noinline")


def _tidied(module: Any, source: Source, builder: Any) -> None:
    """Run the passes function by function."""
    llvm = _llvm()
    if source.inlined:
        with _disposed(llvm.create_new_module_pass_manager()) as inliner:
            inliner.add_always_inliner_pass()
            inliner.run(module, builder)
    with (
        _disposed(llvm.create_new_function_pass_manager()) as plain,
        _disposed(builder.getFunctionPassManager()) if source.loop_work
        else nullcontext(plain) as loops,
    ):
        plain.add_sroa_pass()
        for function in module.functions:
            if not function.is_declaration and function.name not in source.handed_over:
                has_work = function.name in source.loop_work
                (loops if has_work else plain).run(function, builder)


@contextmanager
def _disposed(passes: Any) -> Iterator[Any]:
    """A pass manager that is gone afterwards.

    llvmlite frees none: the method that would is hidden by that of the base class, which does
    nothing. A pipeline is 70 kB.
    """
    try:
        yield passes
    finally:
        _llvm().newpassmanagers.NewPassManager._dispose(passes)
        passes.detach()


def assembly(source: Source, machine: Machine) -> str:
    """Assembly text of a module for `machine`."""
    with _tools(machine) as tools:
        return str(tools.target_machine.emit_assembly(_optimised(source, tools)))


def object_code(source: Source, effort: int = 2, machine: Machine | None = None) -> bytes:
    """Machine code of a module for `machine`, or the one at hand, to be linked.

    Args:
        source: the module.
        effort: of LLVM's code generator, from 0 to 3; without any it takes a fifth of the time.
        machine: what it is for.

    Raises:
        InternalError: LLVM refuses the module.
    """
    lines = source.text.count("\n")
    with doing(f"LLVM compiles {lines} lines"), _tools(machine or host(), effort) as tools:
        return bytes(tools.target_machine.emit_object(_optimised(source, tools)))


class _Linkers:
    """The linker of the process, and numbers that name what it links.

    A linker keeps 9 kB for all that it ever linked. So there is a new one now and then, and an old
    one is gone with the last code that it has linked. LLVM's older linker asks for memory once for
    code and once for constants, and ends the process where they come to lie 2 GB apart.
    """

    def __init__(self) -> None:
        self._lock = WorkLock()
        self._linked = 0
        self._current: Any = None

    def next(self) -> tuple[Any, int]:
        """A linker, and a number that no other call gets."""
        with self._lock:
            if self._linked % _LINKED_BY_ONE == 0:
                self._current = _llvm().create_lljit_compiler(
                    _target_machine(host()), use_jit_link=True
                )
            self._linked += 1
            return self._current, self._linked


_LINKERS = _Linkers()


def link(images: Sequence[bytes], entry: str, outside: Outside = NOTHING) -> Linked:
    """Object code in memory, ready to be called; the files may refer to each other.

    Args:
        images: the files.
        entry: name of the function that is called.
        outside: functions outside of the program that the code calls.

    Raises:
        InternalError: a function that it calls does not exist.
    """
    with no_fork:
        return _link(images, entry, outside)


def _link(images: Sequence[bytes], entry: str, outside: Outside) -> Linked:
    compiler, number = _LINKERS.next()
    builder = _llvm().JITLibraryBuilder().add_current_process()
    for image in images:
        builder.add_object_img(image)
    for symbol, address in outside.addresses.items():
        builder.import_symbol(symbol, address)
    try:
        tracker = builder.export_symbol(entry).link(compiler, f"{entry}.{number}")
    except RuntimeError as error:
        raise InternalError(f"the compiled code of {entry} cannot be linked: {error}") from error
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(tracker[entry])
    return Linked(function, (tracker, compiler, outside))

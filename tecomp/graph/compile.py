"""Compile a program, or load it from the compilation cache.

The compiler modules are imported only on a cache miss, because importing them dominates a hit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tecomp.compute.tensor import Tensor
from tecomp.constraints.user_hints import DivisionHint, Hint
from tecomp.errors import InternalError
from tecomp.graph.compile_options import CompileRequest, validate_request
from tecomp.graph.layout_candidates import Wanted
from tecomp.graph.program import Program
from tecomp.graph.serialization import (
    corrupted_program_error,
    discard,
    load,
    load_cached_program,
    store_cached_program,
)
from tecomp.machine.descriptor import Target

if TYPE_CHECKING:
    from tecomp.graph.report import ProgramDetails


def compile_program(
    outputs: Tensor | Sequence[Tensor],
    inputs: Sequence[Tensor],
    target: str | Path | Target,
    *,
    constants: Mapping[Tensor, Any],
    name: str,
    layouts: Mapping[Tensor, Wanted],
    hints: Sequence[Hint | DivisionHint],
    relayouts: bool,
    packed: Sequence[Tensor],
) -> Program:
    """Compile a program; `tecomp.compile` documents the arguments and errors."""
    request = validate_request(
        outputs, inputs, target, constants, name, layouts, hints, relayouts=relayouts,
        packed=packed,
    )
    found = load_cached_program(request)
    if found is not None:
        try:
            return Program(request, found, partial(_details_of, request))
        except Exception:  # a corrupted entry whose code cannot be linked
            discard(request)
    from tecomp.graph.compilation_steps import compile_native

    native, details = compile_native(request)
    try:
        program = Program(request, native, lambda: details)
    except InternalError:  # corrupted object code in the cache
        native, details = compile_native(request, is_fresh=True)
        program = Program(request, native, lambda: details)
    store_cached_program(request, native)
    return program


def load_program(folder: str | PathLike[str]) -> Program:
    """Load a program; `tecomp.load` documents the argument and the errors."""
    request, native = load(folder)
    try:
        return Program(request, native, partial(_details_of, request))
    except (InternalError, AttributeError, IndexError) as error:
        raise corrupted_program_error(Path(folder), "its code cannot be linked") from error


def _details_of(request: CompileRequest) -> ProgramDetails:
    """Return the internal structure of a program that came from a cache or a file."""
    from tecomp.graph.compilation_steps import details_of

    return details_of(request)

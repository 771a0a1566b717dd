"""What lowering did, as one page: each pass with what it changed, and code beside its loops."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from importlib import import_module
from itertools import count
from pathlib import Path
from time import monotonic

from tecomp.codegen.functions.function import module_with_lines
from tecomp.codegen.llvm.jit import Machine, assembly
from tecomp.codegen.llvm.line_table import numbered_assembly, numbered_llvm, with_line_table
from tecomp.driver.cached import Build
from tecomp.driver.dump_page import Section, differences, numbered, page, plain
from tecomp.driver.memories import in_memories
from tecomp.errors import LowerError, TecompError
from tecomp.ir.algebra.extents import constant_shape
from tecomp.ir.language.stmt import Extent, PrimFunc
from tecomp.layout.descriptions.layout import Layout
from tecomp.lowering.pipeline import Lowered, lower_all
from tecomp.poly.maps.index_map import IndexMap
from tecomp.scheduling.layout import stored_shape
from tecomp.scheduling.state import StageState

FOLDER = "TECOMP_DUMP"
"""The environment variable that names the folder in which every build leaves its page."""


def asked_page(name: str) -> Path | None:
    """Where a build of that name is to leave its page; None if nobody asked for any."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return None
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise LowerError(
            f"{FOLDER}: {folder} cannot be made ({getattr(error, 'strerror', None) or error}); "
            "name a folder that can be written to",
            kind="wrong-argument",
        ) from error
    plain_name = re.sub(r"\W", "_", name)
    names = (plain_name if k == 1 else f"{plain_name}-{k}" for k in count(1))
    return next(path for each in names if not (path := Path(folder) / f"{each}.html").exists())


@dataclass(slots=True)
class Dump:
    """A page in the making; it is written anew after each part, so that it survives a crash.

    Attributes:
        path: of the file.
        title: of the page.
        sections: so far.
    """

    path: Path
    title: str
    sections: list[Section] = field(default_factory=list)
    _times: list[tuple[str, float]] = field(default_factory=list)
    _text: str = ""

    def add(self, name: str, content: str, seconds: float | None = None) -> None:
        """Add a part.

        Raises:
            LowerError: the file cannot be written.
        """
        self.sections.append(Section(name, content))
        if seconds is not None:
            self._times.append((name, seconds))
        beside = self.path.with_name(f"{self.path.name}.part")
        try:
            beside.write_text(page(self.title, self.sections, self._times), encoding="utf-8")
            beside.replace(self.path)
        except OSError as error:
            raise LowerError(
                f"dump: {self.path} cannot be written ({error.strerror or error}); give the path "
                "of a file in a folder that can",
                kind="wrong-argument",
            ) from error

    def after(self, name: str, func: PrimFunc, seconds: float) -> None:
        """Add what a pass has made."""
        before, self._text = self._text, str(func).rstrip("\n")
        self.add(name, differences(before, self._text), seconds)


def dump_build(build: Build, path: str | Path) -> Lowered:
    """Write the page of a build: lowering, code for the machine at hand, and cost.

    Args:
        build: what is asked for.
        path: of the file, which is written over.

    Returns:
        The function after each pass.

    Raises:
        TecompError: as `tecomp.build`; the page has all until then, and the error.
    """
    machine = "" if build.target is None else f" for {build.target.name}"
    dump = Dump(Path(path), f"{build.name}{machine}")
    try:
        return _dumped(build, dump)
    except Exception as error:
        text = str(error) if isinstance(error, TecompError) else f"{type(error).__name__}: {error}"
        dump.add("error", plain(text))
        raise


def _dumped(build: Build, dump: Dump) -> Lowered:
    dump.add("schedule", plain(str(build.schedule.trace)))
    dump.add("layouts", _layouts(build))
    lowered = lower_all(
        build.schedule, build.args, build.name, binds=build.binds, watch=dump.after
    )
    if build.target is not None:
        before = lowered.functions
        begin = monotonic()
        lowered = in_memories(build.schedule, build.args, lowered, build.target,
                              guards=build.options.check_bounds)
        seconds = monotonic() - begin
        for name in (name for name in lowered.functions if name not in before):
            dump.after(name, lowered.functions[name], seconds)
    _dump_code(build, lowered, dump)
    if build.target is not None:
        try:
            reporting = import_module("tecomp.driver.reporting")
            cost = str(
                reporting.report_of(
                    build.name, build.schedule.state, lowered, build.target, {}))
        except TecompError as error:
            cost = error.message
        dump.add("cost", plain(cost))
    return lowered


def _dump_code(build: Build, lowered: Lowered, dump: Dump) -> None:
    begin = monotonic()
    made, source = module_with_lines(lowered.final, build.options)
    seconds = monotonic() - begin
    for name, func in zip(("name_quotients", "whole_vectors"), made[1:], strict=True):
        dump.after(name, func, seconds / 2)
    ir = list(enumerate(str(made[-1]).rstrip("\n").splitlines(), 1))
    dump.add("LLVM", numbered(ir, list(numbered_llvm(source.text))), seconds)
    begin = monotonic()
    text = assembly(replace(source, text=with_line_table(source.text)), Machine())
    dump.add("assembly", numbered(ir, list(numbered_assembly(text))), monotonic() - begin)


def _layouts(build: Build) -> str:
    stages = [stage for stage in build.schedule.state if stage.layout.maps]
    parts = [plain(_stored(stage)) + _picture(stage) for stage in stages]
    return "".join(parts) or plain("All tensors are stored in the order of NumPy.")


def _stored(stage: StageState) -> str:
    return (
        f"{stage.name}{_listed(stage.op.output(0).shape)} is stored as "
        f"{_listed(stored_shape(stage))}: {' then '.join(map(str, stage.layout.maps))}"
    )


def _listed(shape: Sequence[Extent]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _picture(stage: StageState) -> str:
    """Where the elements of a stage are; nothing where its shape is known at the call alone."""
    tensor = stage.op.output(0)
    shape = constant_shape(tensor.shape)
    if shape is None:
        return ""
    whole = reduce(IndexMap.then, stage.layout.maps)
    try:
        return Layout.of(shape, tensor.dtype, whole).picture()._repr_html_()
    except TecompError as error:
        # The page says what else there is.
        return plain(error.message)

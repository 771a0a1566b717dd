"""`lower`, and the HTML dump of the lowering pipeline."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import reduce
from html import escape
from itertools import count
from pathlib import Path
from time import monotonic

from tecomp.codegen.emit.compile import module_with_lines
from tecomp.codegen.llvm.compiled import number_assembly_lines, number_llvm_lines, with_line_table
from tecomp.codegen.llvm.ir_builder import Options
from tecomp.codegen.llvm.jit import LlvmTarget, assembly
from tecomp.compute.tensor import Tensor
from tecomp.driver.build_cache import DUMP_FOLDER, BuildRequest
from tecomp.driver.memory_check import place_in_memories
from tecomp.errors import LowerError, TecompError
from tecomp.ir.arith.extents import constant_shape
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.stmt import Buffer, Extent, PrimFunc
from tecomp.layout.core.layout import Layout
from tecomp.lowering.pipeline import STAGES, LoweringResult, check_stage, lower_all
from tecomp.machine.descriptor import Target
from tecomp.poly.maps.index_map import IndexMap
from tecomp.scheduling.schedule import Schedule
from tecomp.scheduling.split_schedule import with_arguments
from tecomp.scheduling.state import StageState
from tecomp.scheduling.transform_layout import physical_shape_of

_MAX_LINES = 3000
"""Maximum length of texts for which differences are computed; longer texts take too long."""

_CONTEXT_LINES = 3
"""Number of unchanged context lines around each difference."""

_STYLE = """
:root{color-scheme:light dark;--soft:#59626d;--line:#cbd2d9;
--new:#d9f2dd;--old:#fbdcdc;--mark:#fff0b3}
@media (prefers-color-scheme:dark){
:root{--soft:#aab2bd;--line:#3d4650;--new:#173d22;--old:#4d1f1f;--mark:#5c4a00}}
body{font:14px system-ui,sans-serif;margin:0 16px 50vh}
header{position:sticky;top:0;background:Canvas;border-bottom:1px solid var(--line);padding:8px 0}
h1{font-size:16px;display:inline;margin-right:16px}h2{font-size:15px;scroll-margin-top:64px}
nav{display:inline}nav a{margin-right:10px}.soft{color:var(--soft)}
pre{margin:0;font:12px/1.45 ui-monospace,monospace;overflow-x:auto}
pre div{min-height:1.45em}.n{background:var(--new)}.o{background:var(--old)}
.s{color:var(--soft)}.found{outline:1px solid}.same{background:var(--mark)}
.two{display:grid;grid-template-columns:1fr 1fr;gap:16px}.two>*{max-height:80vh;overflow:auto}
h2:has(+.soft),h2+.soft{display:inline-block;margin:8px 12px 0 0}
td{padding:0 8px}.bar{background:var(--soft);height:8px}
section.whole .d,section:not(.whole) .w{display:none}section.now h2{text-decoration:underline}
"""

_SCRIPT = """
const all=[...document.querySelectorAll('section')],box=document.querySelector('input')
let at=0
const go=k=>{at=Math.max(0,Math.min(all.length-1,k))
 all.forEach((s,i)=>s.classList.toggle('now',i===at));all[at].scrollIntoView()}
const seek=()=>{const word=box.value.toLowerCase();let first=null,count=0
 for(const d of document.querySelectorAll('pre div')){
  const hit=word&&d.textContent.toLowerCase().includes(word);d.classList.toggle('found',!!hit)
  if(hit){count++;if(!first&&d.offsetParent)first=d}}
 document.querySelector('#count').textContent=word?count+' lines':''
 if(first)first.scrollIntoView({block:'center'})}
box.addEventListener('input',seek)
addEventListener('keydown',e=>{if(e.target===box){if(e.key==='Escape')box.blur();return}
 if(e.key==='j')go(at+1);else if(e.key==='k')go(at-1)
 else if(e.key==='d')all[at].classList.toggle('whole')
 else if(e.key==='/'){e.preventDefault();box.focus()}})
for(const two of document.querySelectorAll('.two'))two.addEventListener('mouseover',e=>{
 const line=e.target.dataset&&e.target.dataset.line
 for(const d of two.querySelectorAll('[data-line]'))
  d.classList.toggle('same',!!line&&d.dataset.line===line)})
"""


@dataclass(frozen=True, slots=True)
class Section:
    """Section of the HTML page.

    Attributes:
        name: Heading.
        content: HTML text.
    """

    name: str
    content: str


def page(title: str, sections: Sequence[Section], times: Sequence[tuple[str, float]]) -> str:
    """Return the HTML page with its sections, and a table of the times of passes."""
    links = " ".join(f'<a href="#{escape(x.name)}">{escape(x.name)}</a>' for x in sections)
    parts = "".join(
        f'<section id="{escape(x.name)}"><h2>{escape(x.name)}</h2>{x.content}</section>'
        for x in sections
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style><header><h1>{escape(title)}</h1><nav>{links}</nav><div>"
        '<input placeholder="search: /" aria-label="search"> <span id="count"></span> '
        '<span class="soft">j, k: next, previous part; d: differences, or all of it</span></div>'
        f"</header>{_table(times)}{parts}<script>{_SCRIPT}</script></html>\n"
    )


def _table(times: Sequence[tuple[str, float]]) -> str:
    longest = max((seconds for _, seconds in times), default=0.0) or 1.0
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{1e3 * seconds:.1f} ms</td><td>"
        f'<div class="bar" style="width:{240 * seconds / longest:.0f}px"></div></td></tr>'
        for name, seconds in times
    )
    return f"<table>{rows}</table>"


def preformatted_html(text: str) -> str:
    """Return HTML for preformatted text."""
    return f"<pre>{''.join(_line(line) for line in text.splitlines())}</pre>"


def differences(before: str, after: str) -> str:
    """Return HTML with the line differences of two texts, and the second text in full."""
    if before == after:
        return '<p class="soft">the same</p>'
    full_html = f'<div class="w">{preformatted_html(after)}</div>'
    old, new = before.splitlines(), after.splitlines()
    if not old or max(len(old), len(new)) > _MAX_LINES:
        return preformatted_html(after)
    lines = []
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT_LINES):
        lines.append(_line("...", "s"))
        for kind, i, j, k, n in group:
            if kind == "equal":
                lines += [_line(f"  {line}") for line in new[k:n]]
                continue
            lines += [_line(f"- {line}", "o") for line in old[i:j]]
            lines += [_line(f"+ {line}", "n") for line in new[k:n]]
    return f'<pre class="d">{"".join(lines)}</pre>{full_html}'


def side_by_side_html(left: Sequence[tuple[int, str]], right: Sequence[tuple[int, str]]) -> str:
    """Return HTML with two texts side by side; hovering highlights lines of the same number."""
    columns = (
        f"<pre>{''.join(_line(text, number=number) for number, text in lines)}</pre>"
        for lines in (left, right)
    )
    return f'<div class="two">{"".join(columns)}</div>'


def _line(text: str, kind: str = "", number: int = 0) -> str:
    style = f' class="{kind}"' if kind else ""
    attribute = f' data-line="{number}"' if number else ""
    return f"<div{style}{attribute}>{escape(text)}</div>"


def dump_destination(name: str) -> Path | None:
    """Return the unused path for the page of a build, or None if no dump is requested.

    Raises:
        LowerError: If the dump folder cannot be created.
    """
    folder = os.environ.get(DUMP_FOLDER)
    if not folder:
        return None
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise LowerError(
            "{dump_folder}: cannot create {folder} ({reason}); specify a writable folder",
            kind="invalid-type", dump_folder=DUMP_FOLDER, folder=folder,
            reason=getattr(error, "strerror", None) or error,
        ) from error
    plain_name = re.sub(r"\W", "_", name)
    names = (plain_name if k == 1 else f"{plain_name}-{k}" for k in count(1))
    return next(path for stem in names if not (path := Path(folder) / f"{stem}.html").exists())


@dataclass(slots=True)
class Dump:
    """HTML page under construction; rewritten after each section, so that it survives a crash.

    Attributes:
        path: Path of the file.
        title: Title of the page.
        sections: Sections added so far.
    """

    path: Path
    title: str
    sections: list[Section] = field(default_factory=list)
    _times: list[tuple[str, float]] = field(default_factory=list)
    _text: str = ""

    def add(self, name: str, content: str, seconds: float | None = None) -> None:
        """Append a section and write the page.

        Raises:
            LowerError: If the file cannot be written.
        """
        self.sections.append(Section(name, content))
        if seconds is not None:
            self._times.append((name, seconds))
        temp_path = self.path.with_name(f"{self.path.name}.part")
        try:
            temp_path.write_text(page(self.title, self.sections, self._times), encoding="utf-8")
            temp_path.replace(self.path)
        except OSError as error:
            raise LowerError(
                "dump: cannot write {path} ({reason}); specify a file in a writable folder",
                kind="invalid-type", path=self.path, reason=error.strerror or error,
            ) from error

    def after(self, name: str, func: PrimFunc, seconds: float) -> None:
        """Append the function after a pass, as differences to the previous one."""
        before, self._text = self._text, str(func).rstrip("\n")
        self.add(name, differences(before, self._text), seconds)


def dump_build(build: BuildRequest, path: str | Path) -> LoweringResult:
    """Write the HTML page of a build: lowering, LLVM IR and assembly for the host, and cost.

    Args:
        build: Build request.
        path: Path of the file, which is overwritten.

    Returns:
        The function after each pass.

    Raises:
        TecompError: If the build fails; the page then contains all finished sections and the error.
    """
    machine = "" if build.target is None else f" for {build.target.name}"
    dump = Dump(Path(path), f"{build.name}{machine}")
    try:
        return _dump(build, dump)
    except Exception as error:
        text = str(error) if isinstance(error, TecompError) else f"{type(error).__name__}: {error}"
        dump.add("error", preformatted_html(text))
        raise


def _dump(build: BuildRequest, dump: Dump) -> LoweringResult:
    dump.add("schedule", preformatted_html(str(build.schedule.trace)))
    dump.add("layouts", _layouts(build))
    lowered = lower_all(
        build.schedule, build.args, build.name, binds=build.strided_buffers, watch=dump.after
    )
    if build.target is not None:
        before = lowered.functions
        begin = monotonic()
        lowered = place_in_memories(build.schedule, build.args, lowered, build.target,
                              guards=build.options.check_bounds)
        seconds = monotonic() - begin
        for name in (name for name in lowered.functions if name not in before):
            dump.after(name, lowered.functions[name], seconds)
    _dump_code(build, lowered, dump)
    if build.target is not None:
        try:
            import tecomp.driver.profiling as reporting
            cost = str(
                reporting.report_of(
                    build.name, build.schedule.state, lowered, build.target, {}))
        except TecompError as error:
            cost = error.message
        dump.add("cost", preformatted_html(cost))
    return lowered


def _dump_code(build: BuildRequest, lowered: LoweringResult, dump: Dump) -> None:
    begin = monotonic()
    versions, source = module_with_lines(lowered.final, build.options)
    seconds = monotonic() - begin
    for name, func in zip(("name_quotients", "whole_vectors"), versions[1:], strict=True):
        dump.after(name, func, seconds / 2)
    ir = list(enumerate(str(versions[-1]).rstrip("\n").splitlines(), 1))
    dump.add("LLVM", side_by_side_html(ir, list(number_llvm_lines(source.text))), seconds)
    begin = monotonic()
    text = assembly(replace(source, text=with_line_table(source.text)), LlvmTarget())
    dump.add(
        "assembly", side_by_side_html(ir, list(number_assembly_lines(text))), monotonic() - begin
    )


def _layouts(build: BuildRequest) -> str:
    stages = [stage for stage in build.schedule.state if stage.layout.maps]
    parts = [preformatted_html(_describe_storage(stage)) + _picture(stage) for stage in stages]
    return "".join(parts) or preformatted_html("All tensors are stored in the order of NumPy.")


def _describe_storage(stage: StageState) -> str:
    return (
        f"{stage.name}{_list_html(stage.op.output(0).shape)} is stored as "
        f"{_list_html(physical_shape_of(stage))}: {' then '.join(map(str, stage.layout.maps))}"
    )


def _list_html(shape: Sequence[Extent]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _picture(stage: StageState) -> str:
    """Return a figure of the layout of a stage; empty if the shape is symbolic."""
    tensor = stage.op.output(0)
    shape = constant_shape(tensor.shape)
    if shape is None:
        return ""
    combined_map = reduce(IndexMap.then, stage.layout.maps)
    try:
        return Layout.of(shape, tensor.dtype, combined_map).picture()._repr_html_()
    except TecompError as error:
        # Show the error in place of the figure, so that the page keeps its other sections.
        return preformatted_html(error.message)


def lower(
    schedule: Schedule,
    args: Sequence[object],
    name: str = "main",
    stop_after: str | None = None,
    *,
    simple_mode: bool = False,
    binds: Mapping[Tensor, Buffer] | None = None,
    dump: str | Path | None = None,
) -> PrimFunc:
    """Lower a schedule to a function over buffers.

    Args:
        schedule: Schedule to lower.
        args: Tensors and size variables, in the parameter order of the function.
        name: Name of the function.
        stop_after: Last pass to run: `nest`, `apply_buffer_transforms`, `fill_padding`,
            `roll_buffers`, `double_buffers`, `lower_storage`, `flatten_buffer`,
            `expand_tensor_ops`, `pack_reads`, `vectorize_loops`, `unroll_loops` or `simplify`.
            Default: all passes.
        simple_mode: If True, stop after `flatten_buffer`, before loops are vectorized or unrolled.
        binds: `te.decl_buffer` with the strides of the arrays and the offsets in them, for tensors
            among the arguments.
        dump: Path of an HTML page to write, with the schedule, layouts, all passes with their
            differences and times, the code for the host beside the loops that it implements, and
            the cost on the host. After an error, the page contains the finished passes.

    Returns:
        The function; `print` shows it.

    Raises:
        LowerError: If the schedule cannot be lowered without changing its meaning, the pass does
            not exist, or the page cannot be written.

    >>> from tecomp import te
    >>> A = te.placeholder((8, 4), name="A")
    >>> B = te.compute((4, 8), lambda i, j: A[j, i] + 1.0, name="B")
    >>> s = te.create_schedule(B)
    >>> print(lower(s, [A, B]))
    def main(A: Buffer("float32", (32,)), B: Buffer("float32", (32,))):
        for i in range(4):
            for j in range(8):
                B[i * 8 + j] = A[j * 4 + i] + float32(1.0)
    """
    check_stage(stop_after)
    if simple_mode and stop_after is None:
        stop_after = "flatten_buffer"
    if dump is None:
        return lower_all(schedule, args, name, stop_after, binds=binds).final
    check_kind(dump, str | Path, "lower: dump", "pass a file path", LowerError)
    check_kind(schedule, Schedule, "lower: the schedule", "make one with te.create_schedule",
               LowerError)
    prepared = copy(with_arguments(schedule, args))
    build = BuildRequest(prepared, args, name, Target.of("cpu"), Options(), dict(binds or {}))
    return dump_build(build, dump).functions[stop_after or STAGES[-1]]

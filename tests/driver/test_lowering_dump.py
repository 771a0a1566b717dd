"""The page that shows the lowering passes and the source line of each instruction."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import Options, module_with_lines, number_llvm_lines, with_line_table
from tecomp.driver import differences
from tecomp.ir import For, IfThenElse, lines_of, walk
from tecomp.lowering import pipeline
from tests.messages import Diagnostic, diagnostic


def program(extent: Any = 60) -> tuple[te.Schedule, list[te.Tensor]]:
    """Build a program with a vector, a tail, an allocation, a parallel loop and a layout."""
    A = te.placeholder((extent, 64), name="A")
    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((extent, 64), lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute((extent,), lambda i: te.sum(B[i, k], axis=k), name="C")
    s = te.create_schedule(C)
    outer, inner = s[C].split(C.op.axis[0], factor=8)
    s[C].parallel(outer)
    s[B].compute_at(s[C], inner)
    s[B].vectorize(s[B].split(B.op.axis[1], factor=16)[1])
    s[A].transform_layout(lambda i, j: [j // 16, i, j % 16])
    return s, [A, C]


class Parts(HTMLParser):
    """Parser for the text, the line numbers and the links of each section."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: dict[str, list[str]] = {}
        self.numbers: dict[str, list[int]] = {}
        self.links: list[str] = []
        self._name = ""
        self._in_line = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.links += [known[key] or "" for key in ("src", "href") if key in known]
        if tag == "section":
            self._name = known["id"] or ""
            self.parts[self._name], self.numbers[self._name] = [], []
        elif tag == "div" and self._name and (known.get("class") or "n") in "nos":
            self._in_line = True
            self.parts[self._name].append("")
            self.numbers[self._name].append(int(known.get("data-line") or 0))

    def handle_endtag(self, tag: str) -> None:
        self._in_line = False
        if tag == "section":
            self._name = ""

    def handle_data(self, data: str) -> None:
        if self._name and self._in_line:
            self.parts[self._name][-1] += data


def read(path: Path) -> Parts:
    found = Parts()
    found.feed(path.read_text(encoding="utf-8"))
    return found


def test_the_page_has_all_steps_and_needs_no_other_file(tmp_path: Path) -> None:
    s, args = program()
    path = tmp_path / "report.html"
    func = tecomp.lower(s, args, dump=path)
    found = read(path)

    assert func == tecomp.lower(s, args)
    assert list(found.parts) == [
        "schedule", "layouts", *pipeline.STAGES, "name_quotients", "whole_vectors", "LLVM",
        "assembly", "cost",
    ]
    assert all(link.startswith("#") for link in found.links)
    assert "url(" not in path.read_text().replace("url(#", "")
    assert found.parts["schedule"] == str(s.trace).splitlines()
    assert found.parts["layouts"][0] == (
        "A[60, 64] is stored as [4, 60, 16]: lambda i, j: [j // 16, i, j % 16]"
    )
    layout = tecomp.Layout.of((60, 64), "float32", lambda i, j: [j // 16, i, j % 16])
    assert str(layout.picture()) in path.read_text()
    assert str(func).splitlines() == found.parts["LLVM"][: str(func).count("\n") + 1]
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("part", ["LLVM", "assembly"])
def test_assembly_is_shown_next_to_its_loops(tmp_path: Path, part: str) -> None:
    s, args = program()
    tecomp.lower(s, args, dump=tmp_path / "report.html")
    found = read(tmp_path / "report.html")
    texts, numbers = found.parts[part], found.numbers[part]
    count = next(k for k, text in enumerate(texts) if k and numbers[k] == 0)
    loops = texts[:count]

    assert numbers[:count] == list(range(1, count + 1))
    of_line = {n: [t for t, m in zip(texts[count:], numbers[count:], strict=True) if m == n]
               for n in range(1, count + 1)}
    multiplied = next(k for k, text in enumerate(loops, 1) if "* " in text and "= " in text)
    product = "fmul" if part == "LLVM" else "mul|vadd"
    assert any(re.search(product, text) for text in of_line[multiplied])
    assert {n for n in numbers if n} <= set(range(1, count + 1))


def test_statement_lines_match_the_printed_function() -> None:
    s, args = program(te.var("n"))
    for func in pipeline.lower_all(s, args).functions.values():
        text, lines = str(func).splitlines(), lines_of(func)
        loops = [node for node in walk(func.body) if isinstance(node, For)]

        assert loops
        for node in loops:
            name = re.sub(r"\W", "_", node.loop_var.name)
            assert text[lines[id(node)] - 1].lstrip().startswith(f"for {name} in ")
        for node in walk(func.body):
            if isinstance(node, IfThenElse):
                assert text[lines[id(node)] - 1].lstrip().startswith("if ")


def test_a_line_table_changes_no_instruction() -> None:
    s, args = program()
    func = tecomp.lower(s, args)
    plain = tecomp.build(s, args).source("llvm").splitlines()
    source = module_with_lines(func, Options())[1]

    assert [text for _, text in number_llvm_lines(source.text)] == plain
    marked = with_line_table(source.text).splitlines()
    bare = [re.sub(r",? ?!dbg !\d+", "", text) for text in marked]
    assert [text for text in bare if not re.match(r"!(llvm|1000\d\d)", text)][: len(plain)] == plain


def test_the_page_survives_an_error_in_the_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(func: Any) -> Any:
        raise ZeroDivisionError("in the middle")

    monkeypatch.setattr(pipeline, "PASSES", tuple(
        pipeline.Pass(step.name, broken) if step.name == "flatten_buffer" else step
        for step in pipeline.PASSES
    ))
    s, args = program()
    with pytest.raises(ZeroDivisionError):
        tecomp.lower(s, args, dump=tmp_path / "report.html")
    found = read(tmp_path / "report.html")

    assert list(found.parts)[-2:] == ["lower_storage", "error"]
    assert found.parts["error"] == ["ZeroDivisionError: in the middle"]


def test_a_folder_gets_the_page_of_each_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TECOMP_DUMP", str(tmp_path / "pages"))
    s, args = program()
    tecomp.build(s, args, name="first")
    tecomp.build(s, args, name="first")
    s[args[1]].unroll(s[args[1]].leaf_iter_vars[-1])
    refused = te.create_schedule(args[1])
    with pytest.raises(tecomp.LowerError):
        tecomp.build(refused, [args[0]], name="refused")

    assert sorted(path.name for path in (tmp_path / "pages").iterdir()) == [
        "first-2.html", "first.html", "refused.html"
    ]
    assert read(tmp_path / "pages" / "refused.html").parts["error"][0] == (
        "lower: C is an output of the schedule, but is not among the arguments; add it"
    )


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("cache", ["on", "off"])
def test_a_build_that_leaves_a_page_lowers_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, cache: str
) -> None:
    monkeypatch.setenv("TECOMP_DUMP", str(tmp_path))
    monkeypatch.setenv("TECOMP_CACHE", cache)
    s, args = program()
    caplog.set_level("DEBUG", logger="tecomp")
    for _ in range(2):
        caplog.clear()
        kernel = tecomp.build(s, args, name="seen")
        a, c = np.ones((4, 60, 16), np.float32), np.empty(60, np.float32)
        kernel(a, c)

        assert (c == 128).all()
        assert sum(text.startswith("lower seen: nest:") for text in caplog.messages) == 1
    caplog.clear()
    tecomp.lower(s, args, "seen", dump=tmp_path / "report.html")
    assert sum(text.startswith("lower seen: nest:") for text in caplog.messages) == 1


def test_a_page_of_symbolic_sizes_has_no_picture(tmp_path: Path) -> None:
    s, args = program(te.var("n"))
    tecomp.lower(s, args, dump=tmp_path / "report.html")

    assert len(read(tmp_path / "report.html").parts["layouts"]) == 1
    assert "<svg" not in (tmp_path / "report.html").read_text()


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("simple_mode", [False, True])
@pytest.mark.parametrize("stop_after", [None, *pipeline.STAGES])
def test_a_function_is_the_same_with_a_page(
    tmp_path: Path, stop_after: str | None, simple_mode: bool
) -> None:
    s, args = program()
    requested: dict[str, Any] = {"stop_after": stop_after, "simple_mode": simple_mode}

    assert tecomp.lower(s, args, **requested, dump=tmp_path / "x.html") == tecomp.lower(s, args, **requested)


def test_an_invalid_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TECOMP_DUMP", f"{tmp_path}/file/pages")
    s, args = program()
    with pytest.raises(tecomp.LowerError) as caught:
        tecomp.build(s, args)

    assert diagnostic(caught.value) == Diagnostic(
        "invalid-type", dump_folder="TECOMP_DUMP", folder=f"{tmp_path}/file/pages",
        reason="Not a directory",
    )


def test_a_page_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    s, args = program()
    with pytest.raises(tecomp.LowerError) as caught:
        tecomp.lower(s, args, dump=tmp_path / "none" / "report.html")

    assert diagnostic(caught.value) == Diagnostic(
        "invalid-type", path=f"{tmp_path}/none/report.html", reason="No such file or directory",
    )


def test_diffs_show_added_and_removed_lines() -> None:
    before = "\n".join(f"line {k}" for k in range(20))
    shown = differences(before, before.replace("line 9", "<new>"))
    lines = [unescape(re.sub("<[^>]*>", "", x)) for x in shown.partition('<div class="w">')[0].split("</div>")]

    assert lines[:8] == [
        "...", "  line 6", "  line 7", "  line 8", "- line 9", "+ <new>", "  line 10", "  line 11"
    ]
    assert differences(before, before) == '<p class="soft">the same</p>'

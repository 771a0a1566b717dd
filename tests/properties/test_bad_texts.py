"""Parsers accept a text or raise a TecompError."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

import tecomp
from tecomp import ShardLayout, TecompError, te
from tecomp.machine import read_target
from tests.machine.test_description import TOY
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((8, 16), name="A")
K = te.reduce_axis((0, 16), name="k")
B = te.compute((8,), lambda i: te.sum(te.exp(A[i, K]), axis=K), name="B")
SCHEDULE = te.create_schedule(B)
PRINTED = str(tecomp.lower(SCHEDULE, [A, B]))
READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "parse": (tecomp.parse, PRINTED),
    "cute": (lambda text: tecomp.cute(text, "float32"), "((4,2),(8,2)):((1,64),(4,32))"),
    "xla": (tecomp.xla, "f32[16,24]{1,0:T(8,8)(2,1)}"),
    "blocked": (lambda text: tecomp.blocked((8, 32), "float32", text), "AB16b4a"),
    "ShardLayout.parse": (
        ShardLayout.parse, str(ShardLayout((64, 64), "float32", grid=(2, 2), tile=(32, 32)))),
    "target": (lambda text: read_target(text, "toy.toml"), TOY),
    "replay": (lambda text: tecomp.replay(text, B), SCHEDULE.trace.to_json()),
}
PARTS = ("(", ")", "[", "]", "{", "}", ":", ",", ".", "-", "*", "//", "%", "0", "1", "-1", "9" * 30,
         "9" * 5000, "0x" + "f" * 5000, "[" * 3000, "a." * 3000, "x", "None", "True", "nan", "1e400", "lambda", "\n", " ", "    ", '"', "'", "\0", "é")


def changed(text: str, draw: Random) -> str:
    """Return the text with one to three pieces deleted, inserted or duplicated."""
    for _ in range(draw.randint(1, 3)):
        at, end = sorted(draw.randrange(len(text) + 1) for _ in range(2))
        end = min(end, at + draw.randint(1, 12))
        piece = draw.choice(["", draw.choice(PARTS), text[at:end] * 2])
        text = text[:at] + piece + text[end:]
    return text


@pytest.mark.exhaustive(keep=1, most=5)
@pytest.mark.parametrize("name", READERS)
def test_texts(name: str) -> None:
    read, text = READERS[name]
    read(text)
    draw = Random(7)
    raw = []
    for _ in range(600):
        source = changed(text, draw)
        try:
            read(source)
        except TecompError:
            continue
        except Exception as error:
            raw.append(f"{source!r}: {type(error).__name__}: {error}")

    assert raw == []


@pytest.mark.parametrize(("name", "text", "expected"), [
    ("blocked", "AB16b4e", Diagnostic("layout-text", tag="AB16b4e", strange="e", order="ab")),
    ("replay", "[" * 100_000,
     Diagnostic("trace-text")),
    ("xla", "f32[16,,24]{1,0}", Diagnostic(
        "layout-text", text="f32[16,,24]{1,0}", position=16, rest="",
    )),
])
def test_messages(name: str, text: str, expected: Diagnostic) -> None:
    with pytest.raises(TecompError) as caught:
        READERS[name][0](text)

    assert diagnostic(caught.value) == expected

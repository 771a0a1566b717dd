"""`[rates]`: rates of one core per second are consistent and do not change generated code."""

from __future__ import annotations

from typing import Any

import pytest

import tecomp
from tecomp import te
from tecomp.codegen import Options
from tecomp.driver import BuildRequest, program_keys
from tecomp.errors import TargetError
from tecomp.machine import Rates, read_target
from tests.machine.test_core import TOY
from tests.messages import Diagnostic, diagnostic

RATES = '''
[rates]
read_bytes_per_second = [2e11, 1e11, 3e10]
flops = { float32 = 1e11, float64 = 5e10 }
scalar_flops = { float32 = 1.4e10 }
source = "a manual"
'''


def test_rates_are_read() -> None:
    found = read_target(TOY + RATES, "toy.toml").rates

    assert found is not None
    assert found.read_bytes_per_second == (2e11, 1e11, 3e10)
    assert (dict(found.flops), dict(found.scalar_flops)) == (
        {"float32": 1e11, "float64": 5e10}, {"float32": 1.4e10})


def test_host_rates_are_unknown_before_calibration() -> None:
    assert tecomp.Target.load("cpu").rates is None


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("[2e11, 1e11, 3e10]", "[1e11, 2e11, 3e10]",
         Diagnostic(
             "target", source="toy.toml", line=":18", section="[rates]: ",
             reason="read_bytes_per_second has 1e+11 before 2e+11, but a cache must not be slower than the next level; list the caches first, from the smallest on, and memory last",
         )),
        ("[2e11, 1e11, 3e10]", "[2e11, 3e10]",
         Diagnostic(
             "target", source="toy.toml", line="", section="",
             reason="target toy has 2 caches and 2 read_bytes_per_second; specify 3: one per cache, and one for memory",
         )),
        ("[2e11, 1e11, 3e10]", "[2e11, 1e11, 0.0]",
         Diagnostic(
             "target", source="toy.toml", line=":19", section="[rates]: ",
             key="read_bytes_per_second", value=[200000000000.0, 100000000000.0, 0.0],
             expected="a list of numbers of bytes per second, above 0",
         )),
        ("{ float32 = 1.4e10 }", "{ float32 = 2e11 }",
         Diagnostic(
             "target", source="toy.toml", line=":18", section="[rates]: ",
             reason="scalar_flops has 2e+11 for float32, but flops has 1e+11; vector rates must not be lower than scalar rates",
         )),
        ("float64 = 5e10", "flot64 = 5e10",
         Diagnostic(
             "target", source="toy.toml", line=":20", section="[rates.flops]: ", key="flot64",
             subject="type", value="flot64", hint="did you mean `float64`?",
         )),
        ('source = "a manual"', "", Diagnostic(
            "target", source="toy.toml", line=":18", section="[rates]: ",
            keys="`source` (a text)", pronoun="it",
        )),
    ],
    ids=["order", "count", "zero", "scalars", "type", "source"],
)
def test_mistakes_are_named(old: str, new: str, expected: Diagnostic) -> None:
    with pytest.raises(TargetError) as caught:
        read_target(TOY + RATES.replace(old, new), "toy.toml")

    assert diagnostic(caught.value) == expected


def test_rates_are_of_a_core() -> None:
    rates: dict[str, Any] = {"read_bytes_per_second": [1.0], "flops": {"float32": 1.0}, "source": "made up"}
    with pytest.raises(TargetError) as caught:
        tecomp.Target.load("stick128").overridden(rates=rates)

    assert diagnostic(caught.value) == (
        Diagnostic(
            "target", source="target stick128, overridden", line="", section="",
            reason="target stick128 has rates per core, but no [core] with its caches; specify rates of its memories instead, such as read_bytes_per_cycle",
        )
    )


def test_code_does_not_depend_on_rates() -> None:
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B)
    plain = read_target(TOY, "toy.toml")
    keys = [
        list(program_keys(BuildRequest(s, [A, B], "main", target, Options())))
        for target in (plain, read_target(TOY + RATES, "toy.toml"))
    ]

    assert keys[0] == keys[1]
    assert keys[0]


def test_rates_can_be_constructed_directly() -> None:
    assert Rates((2.0, 1.0), {"float32": 3.0}).source == ""

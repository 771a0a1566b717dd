"""`calibrate`: rates are positive and ordered, stored by machine, and reloaded if complete."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tecomp
from tecomp.codegen import current_store
from tecomp.driver import calibrate as room
from tecomp.driver import rates_of
from tecomp.driver.calibrate import calibrate
from tecomp.errors import TargetError
from tecomp.machine import Rates
from tests.messages import Diagnostic, diagnostic
from tests.strategies.machines import ACCELERATORS

GIVEN = {"read_bytes_per_second": [8.0, 4.0, 2.0, 1.0], "flops": {"float32": 9.0}, "source": "made up"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create an empty cache folder and clear the known rates of the process."""
    monkeypatch.setenv("TECOMP_CACHE", "on")
    monkeypatch.setenv("TECOMP_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(room, "_KNOWN", {})
    monkeypatch.setattr(room, "_SECONDS", 0.0)
    monkeypatch.setattr(room, "_MAX_MEMORY", 1 << 20)
    return tmp_path / "compiled"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Rates]:
    """Replace the measurement by made-up rates, and record them."""
    found: list[Rates] = []

    def measured(core: tecomp.Core) -> Rates:
        levels = range(len(core.cache_bytes) + 1, 0, -1)
        result = Rates(tuple(float(k) for k in levels), {"float32": 7.0 + len(found)}, source="made up")
        found.append(result)
        return result

    monkeypatch.setattr(room, "measure_rates", measured)
    return found


def test_rates_are_positive_and_in_order(folder: Path) -> None:
    target = calibrate("cpu")

    assert target.core is not None
    assert target.rates is not None
    reads = target.rates.read_bytes_per_second
    assert len(reads) == len(target.core.cache_bytes) + 1
    assert all(near >= far > 0 for near, far in pairwise(reads))
    assert set(target.rates.flops) == {"float32", "float64", "int32"}
    assert set(target.rates.scalar_flops) == {"float32", "float64"}
    for dtype, scalar in target.rates.scalar_flops.items():
        assert 0 < scalar <= target.rates.flops[dtype]
    assert replace(target, rates=None) == tecomp.Target.load("cpu")


def test_rates_are_measured_once(folder: Path, counted: list[Rates], monkeypatch: pytest.MonkeyPatch) -> None:
    first = calibrate()
    assert calibrate("cpu") == calibrate(tecomp.Target.load("cpu")) == first
    monkeypatch.setattr(room, "_KNOWN", {})
    # Another process reads the rates from the file, which does not depend on the core count.
    assert calibrate(tecomp.Target.load("cpu", core={"count": 1})).rates == first.rates == counted[0]
    assert len(counted) == 1
    assert len([*folder.glob("rates-*.entry")]) == 1
    assert calibrate(again=True).rates == counted[1] != first.rates
    assert calibrate().rates == counted[1]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"read_bytes_per_second": [1.0, 2.0]}',
     b'{"read_bytes_per_second": [2.0], "flops": {"float32": 1.0}, "source": "another machine"}',
     b'{"read_bytes_per_second": [NaN], "flops": {"float32": -1.0}, "source": ""}'],
)
def test_corrupt_cached_rates_are_remeasured(
    content: bytes, folder: Path, counted: list[Rates], monkeypatch: pytest.MonkeyPatch
) -> None:
    calibrate()
    (path,) = folder.glob("rates-*.entry")
    store = current_store()
    assert store is not None
    store.put(path.stem, content)
    monkeypatch.setattr(room, "_KNOWN", {})

    assert calibrate().rates == counted[1]


def test_a_file_that_was_cut_is_measured_again(
    folder: Path, counted: list[Rates], monkeypatch: pytest.MonkeyPatch
) -> None:
    calibrate()
    (path,) = folder.glob("rates-*.entry")
    path.write_bytes(path.read_bytes()[:-5])
    monkeypatch.setattr(room, "_KNOWN", {})

    assert calibrate().rates == counted[1]


def test_without_a_cache_a_process_measures_once(
    folder: Path, counted: list[Rates], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TECOMP_CACHE", "off")
    calibrate()
    calibrate()

    assert len(counted) == 1
    assert not folder.exists()


def test_stated_rates_stay(counted: list[Rates]) -> None:
    cpu = tecomp.Target.load("cpu", core={"cache_bytes": [1024, 4096, 65536]}, rates=GIVEN)

    assert calibrate(cpu) is cpu
    assert counted == []


@pytest.mark.parametrize("name", ACCELERATORS)
def test_described_targets_are_not_calibrated(name: str) -> None:
    with pytest.raises(TargetError) as caught:
        calibrate(name)

    assert diagnostic(caught.value) == (
        Diagnostic("conflicting-options", machine=name)
    )


def test_again_is_true_or_false() -> None:
    with pytest.raises(TargetError) as caught:
        calibrate("cpu", again="yes")  # type: ignore[arg-type]

    assert diagnostic(caught.value) == Diagnostic(
        "invalid-type", where="calibrate: again", value="yes", remedy="pass True or False",
    )


SPEED = st.floats(1.0, 1e13)


@given(st.lists(SPEED, min_size=1, max_size=5), st.dictionaries(st.sampled_from(("float32", "float64")), SPEED),
       st.dictionaries(st.sampled_from(("float32", "float64")), SPEED))
def test_noise_leads_to_no_nonsense(
    reads: list[float], vectors: dict[str, float], scalars: dict[str, float]
) -> None:
    """For any measurements, levels are ordered, and no rate is below its measurement."""
    found = {("vectors", name): rate for name, rate in vectors.items()}
    found |= {("scalars", name): rate for name, rate in scalars.items()}
    found |= {("read", str(k)): rate for k, rate in enumerate(reads)}
    rates = rates_of(found)

    assert all(near >= far for near, far in pairwise(rates.read_bytes_per_second))
    assert all(kept >= seen for kept, seen in zip(rates.read_bytes_per_second, reads, strict=True))
    assert max(rates.read_bytes_per_second) == max(reads)
    assert all(rates.flops[name] == max(rate, scalars.get(name, rate)) for name, rate in vectors.items())
    assert rates.scalar_flops == scalars

"""Demo: its filters have the stated properties, and its kernel computes their responses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tecomp
from tecomp.demo import DemoRun, filters, main, run
from tecomp.demo.filters import schedule_on_cpu, schedule_on_target
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close
from tests.strategies.machines import ACCELERATORS


@pytest.fixture(scope="module")
def corner() -> filters.Array:
    """Return a part of the photograph whose sides no tile size divides."""
    return np.ascontiguousarray(filters.photograph()[:, 100:137, 200:261])


def test_the_photograph_is_real() -> None:
    image = filters.photograph()

    assert image.shape == (1, 600, 512, 3)
    assert image.dtype == np.float32
    assert (image.min(), image.max()) == (0.0, 1.0)


def test_the_filters_are_normal() -> None:
    """Filters have equal gains, and oriented filters do not respond to constant regions."""
    bank = filters.filter_bank()
    gains = np.abs(bank.weights).sum(axis=(0, 1, 2))
    flat = bank.weights.sum(axis=(0, 1, 2))
    oriented = [k for k, name in enumerate(bank.names) if name.startswith(("Gabor", "Sobel"))]

    assert bank.weights.shape == (5, 5, 3, 32)
    assert len(oriented) == 18
    assert_close(gains, 1.0, rtol=1e-6)
    assert_close(flat[oriented], 0.0, atol=1e-7)


def test_numpy_and_scipy_agree(corner: filters.Array) -> None:
    bank = filters.filter_bank()
    exact = filters.with_scipy(corner.astype(np.float64), bank)

    assert_close(filters.with_numpy(corner, bank), exact, rtol=1e-5, atol=1e-6)
    assert_close(filters.with_scipy(corner, bank), exact, rtol=1e-5, atol=1e-6)


def test_the_kernel_computes_the_features(corner: filters.Array) -> None:
    bank = filters.filter_bank()
    _, height, width, _ = corner.shape
    program = schedule_on_cpu(height, width, 32)
    kernel = tecomp.build(program.schedule, program.args, target="cpu")
    blocked = np.full((1, height, 2, width, 16), np.nan, np.float32)

    kernel(corner, bank.weights, bank.bias, blocked)

    expected = filters.with_scipy(corner.astype(np.float64), bank)
    features = blocked.transpose(0, 1, 3, 2, 4).reshape(expected.shape)
    assert_close(features, expected, rtol=main.RTOL, atol=main.ATOL)
    np.testing.assert_array_equal(kernel.unpack(program.args[-1], blocked), features)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("name", ACCELERATORS)
def test_machines_compute_the_features(corner: filters.Array, name: str) -> None:
    """Scratchpad machines compute the features without out-of-bounds accesses."""
    bank = filters.filter_bank()
    _, height, width, _ = corner.shape
    target = tecomp.Target.load(name)
    program = schedule_on_target(target, height, width, 32)
    assert program is not None
    kernel = tecomp.build(program.schedule, program.args, target=target, check_bounds=True)
    features = np.full((1, height, width, 32), np.nan, np.float32)

    kernel(corner, bank.weights, bank.bias, features)

    expected = filters.with_scipy(corner.astype(np.float64), bank)
    assert_close(features, expected, rtol=main.RTOL, atol=main.ATOL)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("name", ACCELERATORS)
def test_machines_are_used(name: str) -> None:
    """On the whole photograph, most cores have balanced work and each pixel is copied once."""
    target = tecomp.Target.load(name)
    program = schedule_on_target(target, 600, 512, 32)
    assert program is not None
    report = tecomp.build(program.schedule, program.args, target=target).report()

    assert len(report.cores) >= 0.9 * target.cores
    assert report.imbalance < 1.05
    assert report.operations["mul float32"] == 600 * 512 * 32 * 75
    out = report.of("global", "write")
    assert out is not None
    assert out.bytes >= 600 * 512 * 32 * 4
    for link in target.links.values():
        if link.from_ == "global":
            cycles = [report.chip] if link.scope == "chip" else [c.cycles for c in report.cores]
            assert all(cycle[link.name] > 0 for cycle in cycles)


def test_small_scratchpads_take_small_parts(corner: filters.Array) -> None:
    bank = filters.filter_bank()
    _, height, width, _ = corner.shape
    target = tecomp.Target.load("stick128").overridden(
        memory={"lx": {"capacity_bytes": 16384, "reserved_bytes": 0}}
    )
    program = schedule_on_target(target, height, width, 32)
    assert program is not None
    features = np.full((1, height, width, 32), np.nan, np.float32)

    tecomp.build(program.schedule, program.args, target=target)(
        corner, bank.weights, bank.bias, features
    )

    assert_close(
        features, filters.with_numpy(corner, bank), rtol=main.RTOL, atol=main.ATOL
    )


def test_a_processor_has_no_scratchpads() -> None:
    assert schedule_on_target(tecomp.Target.load("cpu"), 37, 61, 32) is None


def test_a_machine_without_scratchpads_is_refused_at_once(tmp_path: Path) -> None:
    without = tecomp.Target.load("vtcm2d").overridden(
        memory={"global.vtcm": None}, link=None, engine=None)
    shown: list[str] = []

    with pytest.raises(tecomp.TargetError) as caught:
        run(DemoRun(without, tmp_path / "demo.png"), shown.append)

    assert diagnostic(caught.value) == (
        Diagnostic("target", target="vtcm2d")
    )
    assert [line for line in shown if line.startswith("\n---")] == [
        "\n--- input ".ljust(80, "-")]


@pytest.mark.exhaustive
def test_build_errors_precede_printed_loops(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, corner: filters.Array
) -> None:
    monkeypatch.setattr(main, "photograph", lambda: corner)
    small = tecomp.Target.load("stick128").overridden(
        memory={"ddr": {"capacity_bytes": 1 << 14, "reserved_bytes": 0}})
    shown: list[str] = []

    with pytest.raises(tecomp.CapacityError):
        run(DemoRun(small, tmp_path / "demo.png"), shown.append)

    assert sum(line.startswith("\n---") for line in shown) == 1


@pytest.mark.exhaustive
def test_wrong_numbers_are_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, corner: filters.Array
) -> None:
    right = filters.with_scipy
    monkeypatch.setattr(main, "photograph", lambda: corner)
    monkeypatch.setattr(main, "with_scipy", lambda image, bank: right(image, bank) + 1e-3)
    shown: list[str] = []
    job = DemoRun(tecomp.Target.load("stick128"), tmp_path / "demo.png")

    assert not run(job, shown.append)
    assert any(line.endswith("THE RESULTS DISAGREE") for line in shown)

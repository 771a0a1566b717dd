"""The main job: its filters are what they claim, and its kernel computes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tecomp
from tecomp import demo


@pytest.fixture(scope="module")
def corner() -> demo.Array:
    """A piece of the photograph whose sides no tile divides."""
    return np.ascontiguousarray(demo.photograph()[:, 100:137, 200:261])


def test_the_photograph_is_real() -> None:
    image = demo.photograph()

    assert image.shape == (1, 600, 512, 3)
    assert image.dtype == np.float32
    assert (image.min(), image.max()) == (0.0, 1.0)


def test_the_filters_are_normal() -> None:
    """Gains are equal; oriented filters do not answer to a flat region."""
    bank = demo.filter_bank()
    gains = np.abs(bank.weights).sum(axis=(0, 1, 2))
    flat = bank.weights.sum(axis=(0, 1, 2))
    oriented = [k for k, name in enumerate(bank.names) if name.startswith(("Gabor", "Sobel"))]

    assert bank.weights.shape == (5, 5, 3, 32)
    assert len(oriented) == 18
    np.testing.assert_allclose(gains, 1.0, rtol=1e-6)
    np.testing.assert_allclose(flat[oriented], 0.0, atol=1e-7)


def test_numpy_and_scipy_agree(corner: demo.Array) -> None:
    bank = demo.filter_bank()
    exact = demo.with_scipy(corner.astype(np.float64), bank)

    np.testing.assert_allclose(demo.with_numpy(corner, bank), exact, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(demo.with_scipy(corner, bank), exact, rtol=1e-5, atol=1e-6)


def test_the_kernel_computes_the_features(corner: demo.Array) -> None:
    bank = demo.filter_bank()
    _, height, width, _ = corner.shape
    program = demo.filtered(height, width, 32)
    kernel = tecomp.build(program.schedule, program.args, target="cpu")
    blocked = np.full((1, height, 2, width, 16), np.nan, np.float32)

    kernel(corner, bank.weights, bank.bias, blocked)

    expected = demo.with_scipy(corner.astype(np.float64), bank)
    features = blocked.transpose(0, 1, 3, 2, 4).reshape(expected.shape)
    np.testing.assert_allclose(features, expected, rtol=demo.RTOL, atol=demo.ATOL)
    np.testing.assert_array_equal(kernel.unpack(program.args[-1], blocked), features)


def test_wrong_numbers_are_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    right = demo.with_scipy
    monkeypatch.setattr(demo, "with_scipy", lambda image, bank: right(image, bank) + 1e-3)
    shown: list[str] = []

    assert not demo.run(tmp_path / "demo.png", shown.append)
    assert any(line.endswith("THE NUMBERS DO NOT AGREE") for line in shown)

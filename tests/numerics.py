"""Compare floating-point results with a bound derived from the magnitudes that were added."""

from __future__ import annotations

from typing import Any

import numpy as np


def assert_close(
    found: Any, expected: Any, rtol: float = 1e-7, atol: float = 0.0, *,
    magnitude: Any = None, err_msg: str = "", strict: bool = False,
) -> None:
    """Check that every element is within `atol + rtol * max(abs(expected), magnitude)`.

    Rounding errors of a sum are relative to the magnitudes of its terms, not to the sum: where terms
    cancel, another order of addition changes the result by many times its own size. Such tests pass
    the sum of the absolute terms as `magnitude`, such as `abs(a) @ abs(b)` for `a @ b`.

    Args:
        found: Result of the code under test.
        expected: Result of the oracle. Elements that are not finite must be equal.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        magnitude: Sum of the absolute values of the terms of each element; broadcast against
            `expected`. Default: the absolute value of `expected`.
        err_msg: Text that the failure begins with.
        strict: If True, shapes and dtypes must be equal too.
    """
    if magnitude is None:
        np.testing.assert_allclose(found, expected, rtol, atol, err_msg=err_msg, strict=strict)
        return
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, f"{err_msg}: shape {found.shape}, not {expected.shape}"
    assert not strict or found.dtype == expected.dtype
    wide = np.complex128 if "c" in (found.dtype.kind, expected.dtype.kind) else np.float64
    found, expected = found.astype(wide), expected.astype(wide)
    is_finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~is_finite], expected[~is_finite], err_msg=err_msg)
    terms = np.broadcast_to(np.asarray(magnitude, np.float64), expected.shape)
    bound = atol + rtol * np.maximum(np.abs(expected), terms)
    off = np.where(is_finite, np.abs(found - np.where(is_finite, expected, 0)), 0) / np.where(
        bound > 0, bound, np.finfo(np.float64).tiny)
    if off.size and not off.max() <= 1:
        at = np.unravel_index(int(np.nanargmax(np.where(np.isnan(off), np.inf, off))), off.shape)
        raise AssertionError(
            f"{err_msg}: element {tuple(map(int, at))} is {found[at]}, expected {expected[at]}: "
            f"off by {off[at]:.3g} times the bound {bound[at]:.3g}; "
            f"{int((~(off <= 1)).sum())} of {off.size} elements differ"
        )


def assert_product(found: Any, *factors: Any, rtol: float = 1e-5) -> None:
    """Check a product of matrices against float64, within a bound of the absolute products."""
    exact, terms = (
        np.linalg.multi_dot(item) if len(item) > 2 else item[0] @ item[1]
        for item in (
            [np.asarray(factor, np.float64) for factor in factors],
            [np.abs(np.asarray(factor, np.float64)) for factor in factors],
        )
    )
    assert_close(found, exact, rtol, magnitude=terms)

"""Functions of SciPy other than statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import (
    constants,
    differentiate,
    fft,
    integrate,
    interpolate,
    linalg,
    ndimage,
    optimize,
    signal,
    spatial,
    special,
)
from scipy.cluster import hierarchy, vq
from scipy.optimize import elementwise
from scipy.spatial import transform

from tests.array.clients.case import Call, Case, Make

_random = np.random.default_rng(1)
X = _random.standard_normal((60, 5))
POSITIVE = np.abs(X) + 0.1
UNIT = 1 / (1 + np.exp(-X))
SIDE = X[:, 0].copy()
TAPS = np.asarray([0.25, 0.5, 0.25])
IMAGE = _random.random((12, 14))
LABELS = (IMAGE > 0.5).astype("int64")
QUATERNIONS = _random.standard_normal((6, 4))


def _of(f: Any, *data: Any, **options: Any) -> Call:
    return lambda make: f(
        *[make(one) if isinstance(one, np.ndarray) else one for one in data], **options)


def _special() -> list[Case]:
    one = ["digamma", "entr", "erf", "erfc", "erfinv", "exp1", "expit",
           "gammaln", "i0", "i0e", "i1", "i1e", "log_ndtr", "loggamma", "logit",
           "ndtr", "ndtri", "psi", "sinc", "softmax", "log_softmax", "logsumexp"]
    two = ["betaln", "binom", "chdtr", "chdtrc", "chdtri", "gammainc", "gammaincc", "kl_div",
           "poch", "rel_entr", "xlog1py", "xlogy", "zeta", "huber", "pdtr"]
    return [
        *[Case(name, _of(getattr(special, name), UNIT)) for name in one],
        *[Case(name, _of(getattr(special, name), POSITIVE, POSITIVE[::-1].copy() + 1), rtol=1e-8)
          for name in two],
        Case("betainc", _of(special.betainc, POSITIVE, POSITIVE + 1, UNIT)),
        Case("stdtrit", _of(special.stdtrit, POSITIVE + 1, UNIT)),
        Case("stdtr", _of(special.stdtr, POSITIVE + 1, UNIT)),
        Case("fdtrc", _of(special.fdtrc, POSITIVE + 1, POSITIVE, UNIT)),
        Case("multigammaln", _of(special.multigammaln, POSITIVE + 3, 3)),
        Case("logsumexp with weights", lambda make: special.logsumexp(
            make(X), axis=1, b=make(POSITIVE), keepdims=True)),
        Case("logsumexp with signs", lambda make: special.logsumexp(
            make(X), axis=1, b=make(X[::-1].copy()), return_sign=True)),
        Case("logsumexp of complex numbers", _of(special.logsumexp, X + 1j * X[::-1], axis=0)),
    ]


def _fft() -> list[Case]:
    names = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "irfft2",
             "fftn", "ifftn", "rfftn", "irfftn", "dct", "idct", "dst", "idst", "dctn", "idctn",
             "dstn", "idstn", "fftshift", "ifftshift"]
    return [
        *[Case(f"fft.{name}", _of(getattr(fft, name), X)) for name in names],
        Case("fft.fht", _of(fft.fht, POSITIVE[:16, 0].copy(), 0.1, 0.5)),
        Case("fft.ifht", _of(fft.ifht, POSITIVE[:16, 0].copy(), 0.1, 0.5)),
        Case("fft.fft with a length and a norm", _of(fft.fft, X, 16, axis=0, norm="ortho")),
    ]


def _signal() -> list[Case]:
    names: dict[str, Call] = {
        "convolve": _of(signal.convolve, SIDE, TAPS),
        "convolve directly": _of(signal.convolve, SIDE, TAPS, mode="same", method="direct"),
        "correlate": _of(signal.correlate, SIDE, TAPS),
        "fftconvolve": _of(signal.fftconvolve, IMAGE, IMAGE[:3, :3].copy()),
        "oaconvolve": _of(signal.oaconvolve, SIDE, TAPS),
        "convolve2d": _of(signal.convolve2d, IMAGE, IMAGE[:3, :3].copy()),
        "correlate2d": _of(signal.correlate2d, IMAGE, IMAGE[:3, :3].copy()),
        "detrend": _of(signal.detrend, X, axis=0),
        "detrend constant": _of(signal.detrend, X, axis=0, type="constant"),
        "hilbert": _of(signal.hilbert, SIDE),
        "hilbert2": _of(signal.hilbert2, IMAGE),
        "envelope": _of(signal.envelope, SIDE),
        "lfilter": _of(signal.lfilter, TAPS, np.asarray([1.0, 0.2]), SIDE),
        "sosfilt": lambda make: signal.sosfilt(
            make(signal.butter(4, 0.2, output="sos")), make(SIDE)),
        "sosfiltfilt": lambda make: signal.sosfiltfilt(
            make(signal.butter(4, 0.2, output="sos")), make(SIDE)),
        "lfilter_zi": _of(signal.lfilter_zi, TAPS, np.asarray([1.0, 0.2, 0.1])),
        "filtfilt": _of(signal.filtfilt, TAPS, np.asarray([1.0, 0.2]), SIDE),
        "medfilt": _of(signal.medfilt, SIDE, 3),
        "medfilt2d": _of(signal.medfilt2d, IMAGE, 3),
        "wiener": _of(signal.wiener, IMAGE),
        "order_filter": _of(signal.order_filter, IMAGE, np.ones((3, 3)), 2),
        "savgol_filter": _of(signal.savgol_filter, SIDE, 5, 2),
        "resample": _of(signal.resample, SIDE, 30),
        "resample_poly": _of(signal.resample_poly, SIDE, 3, 2),
        "upfirdn": _of(signal.upfirdn, TAPS, SIDE, 2, 1),
        "freqz": _of(signal.freqz, TAPS, np.asarray([1.0, 0.2]), worN=16),
        "freqs": lambda make: signal.freqs(
            make(TAPS), make(np.asarray([1.0, 0.2])), make(np.asarray([0.1, 1.0]))),
        "sosfreqz": lambda make: signal.sosfreqz(make(signal.butter(4, 0.2, output="sos")), 16),
        "group_delay": lambda make: signal.group_delay((make(TAPS), make(np.asarray([1.0]))), 16),
        "tf2sos": _of(signal.tf2sos, TAPS, np.asarray([1.0, 0.2])),
        "zpk2tf": lambda make: signal.zpk2tf(
            make(np.asarray([0.5])), make(np.asarray([0.2, 0.1])), 2.0),
        "zpk2sos": lambda make: signal.zpk2sos(
            make(np.asarray([0.5])), make(np.asarray([0.2, 0.1])), 2.0),
        "sos2tf": lambda make: signal.sos2tf(make(signal.butter(4, 0.2, output="sos"))),
        "sos2zpk": lambda make: signal.sos2zpk(make(signal.butter(4, 0.2, output="sos"))),
        "bilinear": lambda make: signal.bilinear(
            make(TAPS), make(np.asarray([1.0, 0.2, 0.3])), 2.0),
        "lp2hp": lambda make: signal.lp2hp(make(TAPS), make(np.asarray([1.0, 0.2, 0.3])), 2.0),
        "deconvolve": _of(signal.deconvolve, SIDE, TAPS),
        "vectorstrength": lambda make: signal.vectorstrength(make(np.abs(SIDE)), make(np.asarray(2.0))),
        "cspline1d": _of(signal.cspline1d, SIDE),
        "qspline1d": _of(signal.qspline1d, SIDE),
        "symiirorder1": _of(signal.symiirorder1, SIDE, 1.0, 0.3),
        "abcd_normalize": lambda make: list(signal.abcd_normalize(
            make(np.eye(2)), make(np.ones((2, 1))), make(np.ones((1, 2))), make(np.ones((1, 1))))),
    }
    return [Case(f"signal.{name}", call, rtol=1e-8) for name, call in names.items()]


def _ndimage() -> list[Case]:
    box = np.ones((3, 3))
    return [
        Case(f"ndimage.{name}", call) for name, call in {
            "gaussian_filter": _of(ndimage.gaussian_filter, IMAGE, 1.0),
            "uniform_filter": _of(ndimage.uniform_filter, IMAGE, 3),
            "median_filter": _of(ndimage.median_filter, IMAGE, 3),
            "maximum_filter": _of(ndimage.maximum_filter, IMAGE, 3),
            "sobel": _of(ndimage.sobel, IMAGE),
            "laplace": _of(ndimage.laplace, IMAGE),
            "convolve": _of(ndimage.convolve, IMAGE, box),
            "correlate1d": _of(ndimage.correlate1d, IMAGE, TAPS),
            "zoom": _of(ndimage.zoom, IMAGE, 2.0),
            "rotate": _of(ndimage.rotate, IMAGE, 30.0),
            "shift": _of(ndimage.shift, IMAGE, 1.5),
            "affine_transform": _of(ndimage.affine_transform, IMAGE, np.eye(2)),
            "map_coordinates": _of(ndimage.map_coordinates, IMAGE, np.ones((2, 4))),
            "binary_erosion": _of(ndimage.binary_erosion, LABELS > 0),
            "binary_dilation": _of(ndimage.binary_dilation, LABELS > 0),
            "grey_opening": _of(ndimage.grey_opening, IMAGE, (3, 3)),
            "distance_transform_edt": _of(ndimage.distance_transform_edt, LABELS),
            "label": lambda make: ndimage.label(make(LABELS))[0],
            "fourier_gaussian": _of(ndimage.fourier_gaussian, IMAGE, 1.0),
            "spline_filter": _of(ndimage.spline_filter, IMAGE),
        }.items()
    ] + [
        Case("ndimage.sum_labels", lambda make: ndimage.sum_labels(
            make(IMAGE), make(LABELS), make(np.asarray([0, 1])))),
        Case("ndimage.mean", lambda make: ndimage.mean(make(IMAGE)), returns_arrays=False),
        Case("ndimage.center_of_mass", lambda make: ndimage.center_of_mass(make(IMAGE)), returns_arrays=False),
    ]


def _clusters() -> list[Case]:
    def flat(make: Make) -> Any:
        return hierarchy.fcluster(hierarchy.linkage(make(X[:12])), 1.0)
    tree = hierarchy.linkage(X[:12])
    return [
        Case("whiten", _of(vq.whiten, X)),
        Case("vq", _of(vq.vq, X, X[:3])),
        Case("py_vq", _of(vq.py_vq, X, X[:3])),
        Case("kmeans", _of(vq.kmeans, X, X[:3])),
        Case("kmeans2", _of(vq.kmeans2, X, X[:3].copy(), minit="matrix")),
        Case("linkage", _of(hierarchy.linkage, X[:12])),
        Case("ward", _of(hierarchy.ward, X[:12])),
        Case("fcluster", flat),
        Case("cophenet", _of(hierarchy.cophenet, tree)),
        Case("inconsistent", _of(hierarchy.inconsistent, tree)),
        Case("leaders", lambda make: hierarchy.leaders(
            make(tree), hierarchy.fcluster(make(tree), 1.0))),
        Case("leaves_list", _of(hierarchy.leaves_list, tree)),
        Case("maxdists", _of(hierarchy.maxdists, tree)),
        Case("to_mlab_linkage", _of(hierarchy.to_mlab_linkage, tree)),
        Case("optimal_leaf_ordering", _of(hierarchy.optimal_leaf_ordering, tree, X[:12])),
        Case("is_valid_linkage", _of(hierarchy.is_valid_linkage, tree), returns_arrays=False),
    ]


def _numerics() -> list[Case]:
    grid = np.linspace(0, 3, 12)
    curve = np.sin(grid)
    return [
        Case("trapezoid", _of(integrate.trapezoid, X, axis=0)),
        Case("trapezoid with places", lambda make: integrate.trapezoid(make(curve), make(grid))),
        Case("simpson", _of(integrate.simpson, X, axis=0), returns_arrays=False),
        Case("cumulative_trapezoid", _of(integrate.cumulative_trapezoid, X, axis=0, initial=0)),
        Case("cumulative_simpson", _of(integrate.cumulative_simpson, X, axis=0), returns_arrays=False),
        Case("tanhsinh", lambda make: integrate.tanhsinh(
            lambda x: x**2, make(np.asarray(0.0)), make(np.asarray([1.0, 2.0]))).integral),
        Case("cubature", lambda make: integrate.cubature(
            lambda x: x[:, 0] ** 2 + x[:, 1], make(np.zeros(2)), make(np.ones(2))).estimate),
        Case("find_root", lambda make: elementwise.find_root(
            lambda x, c: x**2 - c, (make(np.asarray(0.0)), make(np.asarray([4.0, 5.0]))),
            args=(make(np.asarray([2.0, 3.0])),)).x),
        Case("find_minimum", lambda make: elementwise.find_minimum(
            lambda x, c: (x - c) ** 2,
            (make(np.asarray([-5.0])), make(np.asarray([0.1])), make(np.asarray([6.0]))),
            args=(make(np.asarray([2.0, 3.0])),)).x, rtol=1e-6),
        Case("bracket_root", lambda make: list(elementwise.bracket_root(
            lambda x: x**3 - 2, make(np.asarray([0.0, 0.5]))).bracket)),
        Case("bracket_minimum", lambda make: list(elementwise.bracket_minimum(
            lambda x: (x - 3) ** 2, make(np.asarray([0.0, 0.5]))).bracket)),
        Case("derivative", lambda make: differentiate.derivative(
            lambda x: x**3, make(np.asarray([1.0, 2.0]))).df),
        Case("jacobian", lambda make: differentiate.jacobian(
            lambda x: x**2, make(np.asarray([1.0, 2.0]))).df),
        Case("rosen", _of(optimize.rosen, X[:, 0].copy())),
        Case("rosen_der", _of(optimize.rosen_der, X[:, 0].copy())),
        Case("rosen_hess", _of(optimize.rosen_hess, X[:5, 0].copy())),
        Case("convert_temperature", _of(constants.convert_temperature, SIDE, "C", "K")),
        Case("lambda2nu", _of(constants.lambda2nu, POSITIVE)),
        Case("BSpline", lambda make: interpolate.make_interp_spline(
            make(grid), make(curve))(make(grid[:4] + 0.1))),
        Case("CubicSpline", lambda make: interpolate.CubicSpline(
            make(grid), make(curve))(make(grid[:4] + 0.1))),
        Case("Akima1DInterpolator", lambda make: interpolate.Akima1DInterpolator(
            make(grid), make(curve))(make(grid[:4] + 0.1))),
        Case("RegularGridInterpolator", lambda make: interpolate.RegularGridInterpolator(
            (make(grid), make(grid)), make(curve[:, None] * curve))(make(np.ones((3, 2))))),
        Case("NdBSpline", lambda make: interpolate.NdBSpline(
            (make(np.arange(8.0)),), make(np.ones(4)), 3)(make(np.asarray([[3.5], [4.0]])))),
        Case("make_smoothing_spline", lambda make: interpolate.make_smoothing_spline(
            make(grid), make(curve), lam=0.1)(make(grid[:4])), rtol=1e-6),
        Case("make_lsq_spline", lambda make: interpolate.make_lsq_spline(
            make(grid), make(curve), make(np.r_[[0.0] * 4, 1.5, [3.0] * 4]))(make(grid[:4]))),
    ]


def _geometry() -> list[Case]:
    def rotated(make: Make) -> Any:
        turn = transform.Rotation.from_quat(make(QUATERNIONS))
        return [turn.as_matrix(), turn.as_rotvec(), turn.inv().as_quat(),
                turn.apply(make(X[:6, :3])), (turn * turn).as_quat(), turn.magnitude()]

    def moved(make: Make) -> Any:
        turn = transform.Rotation.from_quat(make(QUATERNIONS))
        motion = transform.RigidTransform.from_components(make(X[:6, :3]), turn)
        return [motion.as_matrix(), motion.apply(make(X[:6, :3])), motion.inv().as_matrix()]

    def mean(make: Make) -> Any:
        turn = transform.Rotation.from_quat(make(QUATERNIONS))
        return turn.mean().as_quat()

    def angles(make: Make) -> Any:
        turn = transform.Rotation.from_euler("xyz", make(X[:6, :3]))
        return turn.as_euler("zyx"), turn.as_mrp()

    def matrices(make: Make) -> Any:
        turn = transform.Rotation.from_matrix(make(np.stack([np.eye(3), np.eye(3)[[1, 2, 0]]])))
        return turn.as_quat()

    def slerp(make: Make) -> Any:
        turn = transform.Rotation.from_quat(make(QUATERNIONS))
        return transform.Slerp(make(np.arange(6.0)), turn)(make(np.asarray([0.5, 1.5]))).as_quat()

    def aligned(make: Make) -> Any:
        return transform.Rotation.align_vectors(make(X[:6, :3]), make(X[6:12, :3]))[0].as_matrix()

    return [
        Case("Rotation", rotated), Case("RigidTransform", moved), Case("Rotation.mean", mean),
        Case("Rotation.from_euler", angles), Case("Rotation.from_matrix", matrices),
        Case("Slerp", slerp), Case("align_vectors", aligned),
        Case("pdist", _of(spatial.distance.pdist, X)),
        Case("linalg.block_diag", _of(linalg.block_diag, X[:2], X[:3])),
        Case("linalg.det", _of(linalg.det, X[:5]), returns_arrays=False),
    ]


CASES = [*_special(), *_fft(), *_signal(), *_ndimage(), *_clusters(), *_numerics(), *_geometry()]

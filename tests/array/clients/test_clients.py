"""SciPy, scikit-learn, array-api-extra and einops work with our arrays.

Calls that take long to compile run only with `python -m tests.array.clients`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

CALLS = {
    "scipy_statistics": [
        "skew", "kurtosis", "gmean", "variation", "sem", "tmin", "circmean", "entropy", "zmap",
        "quantile", "pearsonr", "ttest_1samp", "chisquare", "combine_pvalues", "normaltest",
    ],
    "scipy_functions": [
        "expit", "erf", "gammaln", "xlogy", "logsumexp", "log_softmax", "betainc", "fft.fft",
        "fft.dct", "signal.convolve", "signal.detrend", "signal.hilbert", "signal.lfilter",
        "ndimage.gaussian_filter", "ndimage.label", "vq", "linkage", "fcluster", "trapezoid",
        "cumulative_trapezoid", "simpson", "bracket_root", "BSpline", "CubicSpline", "pdist",
        "rosen_der", "Rotation.from_matrix",
    ],
    "scikit_learn": [
        "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "Normalizer", "LabelEncoder",
        "KernelCenterer", "PCA full", "PCA covariance", "Ridge", "LinearDiscriminantAnalysis",
        "GaussianMixture", "train_test_split", "euclidean_distances", "accuracy_score",
        "mean_squared_error", "r2_score", "f1_score", "confusion_matrix",
    ],
    "small_libraries": [
        "angle", "atleast_nd", "cov", "create_diagonal", "isclose", "isin", "kron", "nunique",
        "one_hot", "pad", "setdiff1d", "sinc", "rearrange", "repeat", "pack",
    ],
}


@pytest.mark.exhaustive(most=1)
@pytest.mark.parametrize("module", CALLS)
def test_calls_match_numpy(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.array.clients", module, *CALLS[module]],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
    )
    assert done.stdout == "", done.stderr
    assert done.returncode == 0, done.stderr

"""Preprocessing, decompositions, linear models, mixtures and metrics of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import (
    config_context,
    decomposition,
    discriminant_analysis,
    kernel_approximation,
    linear_model,
    metrics,
    mixture,
    model_selection,
    naive_bayes,
    pipeline,
    preprocessing,
)
from sklearn.metrics import pairwise

from tests.array.clients.case import Call, Case, Make

_random = np.random.default_rng(2)
X = _random.standard_normal((60, 5))
POSITIVE = np.abs(X) + 0.1
CLASSES = (X[:, 0] > 0).astype("int64")
GUESSES = np.where(_random.random(60) < 0.2, 1 - CLASSES, CLASSES)
THREE = _random.integers(0, 3, 60)
VALUES = X @ np.asarray([1.0, -2.0, 0.5, 0, 3]) + _random.standard_normal(60) / 10
PREDICTED = VALUES + _random.standard_normal(60) / 5


def _dispatched(call: Call) -> Call:
    def run(make: Make) -> Any:
        with config_context(array_api_dispatch=True):
            return call(make)
    return run


def _transformed(model: Any, data: Any = X) -> Call:
    """Fit a model, transform its data, and invert the transformation if the model supports it."""
    def call(make: Make) -> Any:
        x = make(data)
        found = model.fit(x).transform(x)
        return (found, model.inverse_transform(found)) if hasattr(
            model, "inverse_transform") else found
    return call


def _score(f: Any, one: Any = VALUES, other: Any = PREDICTED, **options: Any) -> Call:
    return lambda make: np.float64(f(make(one), make(other), **options))


def _fitted(model: Any, y: Any, *names: str) -> Call:
    def call(make: Make) -> Any:
        found = model.fit(make(X), make(y))
        return [*[getattr(found, name) for name in names], found.predict(make(X))]
    return call


_models: dict[str, Call] = {
    "StandardScaler": _transformed(preprocessing.StandardScaler()),
    "MinMaxScaler": _transformed(preprocessing.MinMaxScaler(clip=True)),
    "MaxAbsScaler": _transformed(preprocessing.MaxAbsScaler()),
    "Normalizer": _transformed(preprocessing.Normalizer("l1")),
    "Binarizer": _transformed(preprocessing.Binarizer()),
    "PolynomialFeatures": _transformed(preprocessing.PolynomialFeatures(2)),
    "KernelCenterer": _transformed(preprocessing.KernelCenterer(), X @ X.T),
    "LabelEncoder": lambda make: preprocessing.LabelEncoder().fit_transform(make(THREE)),
    "LabelBinarizer": lambda make: preprocessing.LabelBinarizer().fit_transform(make(THREE)),
    "Nystroem": _transformed(kernel_approximation.Nystroem(n_components=8, random_state=0)),
    "PCA full": _transformed(decomposition.PCA(2, svd_solver="full")),
    "PCA covariance": _transformed(decomposition.PCA(2, svd_solver="covariance_eigh")),
    "PCA randomized": _transformed(decomposition.PCA(
        2, svd_solver="randomized", random_state=0, power_iteration_normalizer="QR")),
    "PCA whitened": _transformed(decomposition.PCA(2, svd_solver="full", whiten=True)),
    "Ridge": _fitted(linear_model.Ridge(solver="svd"), VALUES, "coef_", "intercept_"),
    "RidgeCV": _fitted(linear_model.RidgeCV(), VALUES, "coef_"),
    "RidgeClassifier": _fitted(linear_model.RidgeClassifier(solver="svd"), CLASSES, "coef_"),
    "LinearRegression": _fitted(linear_model.Ridge(alpha=0, solver="svd"), VALUES, "coef_"),
    "LogisticRegression": _fitted(
        linear_model.LogisticRegression(solver="lbfgs"), CLASSES, "coef_", "intercept_"),
    "LogisticRegression of three": _fitted(
        linear_model.LogisticRegression(solver="lbfgs"), THREE, "coef_", "intercept_"),
    "PoissonRegressor": _fitted(linear_model.PoissonRegressor(), np.abs(VALUES), "coef_"),
    "LinearDiscriminantAnalysis": _fitted(
        discriminant_analysis.LinearDiscriminantAnalysis(), CLASSES, "coef_"),
    "GaussianNB": _fitted(naive_bayes.GaussianNB(), CLASSES, "theta_", "var_"),
    "GaussianMixture": lambda make: [
        (m := mixture.GaussianMixture(
            2, init_params="random", random_state=0, max_iter=3, tol=1e-1).fit(make(X))).means_,
        m.covariances_, m.predict_proba(make(X))],
    "GaussianMixture tied": lambda make: mixture.GaussianMixture(
        2, init_params="random", random_state=0, max_iter=3, tol=1e-1,
        covariance_type="tied").fit(make(X)).covariances_,
    "GaussianMixture of diagonals": lambda make: mixture.GaussianMixture(
        2, init_params="random", random_state=0, max_iter=3, tol=1e-1,
        covariance_type="diag").fit(make(X)).covariances_,
    "GaussianMixture of spheres": lambda make: mixture.GaussianMixture(
        2, init_params="random", random_state=0, max_iter=3, tol=1e-1,
        covariance_type="spherical").fit(make(X)).covariances_,
    "train_test_split": lambda make: model_selection.train_test_split(
        make(X), make(CLASSES), random_state=0),
    "Pipeline": lambda make: pipeline.make_pipeline(
        preprocessing.StandardScaler(), decomposition.PCA(2, svd_solver="full"),
        linear_model.Ridge(solver="svd")).fit(make(X), make(VALUES)).predict(make(X)),
    "cosine_similarity": lambda make: pairwise.cosine_similarity(make(X)),
    "euclidean_distances": lambda make: pairwise.euclidean_distances(make(X), make(X[:7])),
    "paired_cosine_distances": lambda make: pairwise.paired_cosine_distances(
        make(X), make(POSITIVE)),
    "paired_euclidean_distances": lambda make: pairwise.paired_euclidean_distances(
        make(X), make(POSITIVE)),
    "rbf_kernel": lambda make: pairwise.rbf_kernel(make(X)),
    "laplacian_kernel": lambda make: pairwise.laplacian_kernel(make(X[:8])),
    "linear_kernel": lambda make: pairwise.linear_kernel(make(X)),
    "polynomial_kernel": lambda make: pairwise.polynomial_kernel(make(X)),
    "sigmoid_kernel": lambda make: pairwise.sigmoid_kernel(make(X)),
    "chi2_kernel": lambda make: pairwise.additive_chi2_kernel(make(POSITIVE[:9])),
    "manhattan_distances": lambda make: pairwise.manhattan_distances(make(X[:9])),
    "roc_curve": lambda make: list(metrics.roc_curve(make(CLASSES), make(VALUES))),
    "precision_recall_curve": lambda make: list(
        metrics.precision_recall_curve(make(CLASSES), make(VALUES))),
    "det_curve": lambda make: list(metrics.det_curve(make(CLASSES), make(VALUES))),
    "confusion_matrix": lambda make: metrics.confusion_matrix(make(CLASSES), make(GUESSES)),
}

_scores: dict[str, Call] = {
    "mean_squared_error": _score(metrics.mean_squared_error),
    "root_mean_squared_error": _score(metrics.root_mean_squared_error),
    "mean_absolute_error": _score(metrics.mean_absolute_error),
    "median_absolute_error": _score(metrics.median_absolute_error),
    "mean_absolute_percentage_error": _score(metrics.mean_absolute_percentage_error),
    "mean_squared_log_error": _score(metrics.mean_squared_log_error, *np.abs([VALUES, PREDICTED])),
    "mean_tweedie_deviance": _score(metrics.mean_tweedie_deviance, *np.abs([VALUES, PREDICTED])),
    "mean_gamma_deviance": _score(metrics.mean_gamma_deviance, *np.abs([VALUES, PREDICTED])),
    "mean_pinball_loss": _score(metrics.mean_pinball_loss),
    "max_error": _score(metrics.max_error),
    "r2_score": _score(metrics.r2_score),
    "explained_variance_score": _score(metrics.explained_variance_score),
    "d2_absolute_error_score": _score(metrics.d2_absolute_error_score),
    "accuracy_score": _score(metrics.accuracy_score, CLASSES, GUESSES),
    "balanced_accuracy_score": _score(metrics.balanced_accuracy_score, CLASSES, GUESSES),
    "zero_one_loss": _score(metrics.zero_one_loss, CLASSES, GUESSES),
    "hamming_loss": _score(metrics.hamming_loss, CLASSES, GUESSES),
    "f1_score": _score(metrics.f1_score, THREE, np.roll(THREE, 1), average="macro"),
    "fbeta_score": _score(metrics.fbeta_score, CLASSES, GUESSES, beta=2),
    "precision_score": _score(metrics.precision_score, CLASSES, GUESSES),
    "recall_score": _score(metrics.recall_score, CLASSES, GUESSES),
    "jaccard_score": _score(metrics.jaccard_score, CLASSES, GUESSES),
    "cohen_kappa_score": _score(metrics.cohen_kappa_score, CLASSES, GUESSES),
    "average_precision_score": _score(metrics.average_precision_score, CLASSES, VALUES),
    "log_loss": _score(metrics.log_loss, CLASSES, 1 / (1 + np.exp(-VALUES))),
    "brier_score_loss": _score(metrics.brier_score_loss, CLASSES, 1 / (1 + np.exp(-VALUES))),
    "roc_auc_score": _score(metrics.roc_auc_score, CLASSES, VALUES),
    "calinski_harabasz_score": _score(metrics.calinski_harabasz_score, X, CLASSES),
    "davies_bouldin_score": _score(metrics.davies_bouldin_score, X, CLASSES),
}

CASES = [
    *[Case(name, _dispatched(call), rtol=1e-6) for name, call in _models.items()],
    *[Case(name, _dispatched(call), returns_arrays=False) for name, call in _scores.items()],
]

"""Statistical functions of SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from tests.array.clients.case import Call, Case, Make

_random = np.random.default_rng(0)
X = _random.standard_normal((60, 5))
Y = X + _random.standard_normal((60, 5)) / 2
POSITIVE = np.abs(X) + 0.1
SIDE = X[:, 0].copy()
OTHER = Y[:, 0].copy()


def _of(f: Any, *data: Any, **options: Any) -> Call:
    return lambda make: f(*[make(one) for one in data], **options)


def _test(f: Any, *data: Any, **options: Any) -> Call:
    """Return the test statistic and the p-value."""
    def call(make: Make) -> Any:
        result = f(*[make(one) for one in data], **options)
        return result.statistic, result.pvalue
    return call


CASES = [
    Case("zscore", _of(stats.zscore, X)),
    Case("zscore of rows", _of(stats.zscore, X, axis=1, ddof=1)),
    Case("zmap", _of(stats.zmap, X, Y)),
    Case("gzscore", _of(stats.gzscore, POSITIVE)),
    Case("skew", _of(stats.skew, X, bias=False)),
    Case("kurtosis", _of(stats.kurtosis, X, axis=1)),
    Case("moment", _of(stats.moment, X, order=3)),
    Case("moments", _of(stats.moment, X, order=[1, 2, 3, 4])),
    Case("describe", lambda make: tuple(stats.describe(make(X)))[2:]),
    Case("gmean", _of(stats.gmean, POSITIVE)),
    Case("hmean", _of(stats.hmean, POSITIVE, axis=1)),
    Case("pmean", _of(stats.pmean, POSITIVE, p=3)),
    Case("gstd", _of(stats.gstd, POSITIVE)),
    Case("variation", _of(stats.variation, POSITIVE)),
    Case("sem", _of(stats.sem, X)),
    Case("tmean", _of(stats.tmean, SIDE, limits=(-1, 1))),
    Case("tvar", _of(stats.tvar, SIDE, limits=(-1, 1))),
    Case("tstd", _of(stats.tstd, SIDE, limits=(-1, 1))),
    Case("tsem", _of(stats.tsem, SIDE, limits=(-1, 1))),
    Case("tmin", _of(stats.tmin, X, lowerlimit=-1)),
    Case("tmax", _of(stats.tmax, X, upperlimit=1)),
    Case("iqr", _of(stats.iqr, X, axis=0)),
    Case("median_abs_deviation", _of(stats.median_abs_deviation, X)),
    Case("kstat", _of(stats.kstat, SIDE, 3)),
    Case("kstatvar", _of(stats.kstatvar, SIDE, 2)),
    Case("lmoment", _of(stats.lmoment, SIDE)),
    Case("circmean", _of(stats.circmean, POSITIVE)),
    Case("circvar", _of(stats.circvar, POSITIVE, axis=0)),
    Case("circstd", _of(stats.circstd, POSITIVE, axis=0)),
    Case("directional_stats", lambda make: [
        (r := stats.directional_stats(make(X))).mean_direction, r.mean_resultant_length]),
    Case("entropy", _of(stats.entropy, POSITIVE)),
    Case("relative entropy", _of(stats.entropy, POSITIVE, POSITIVE[::-1].copy(), base=2)),
    Case("differential_entropy", _of(stats.differential_entropy, X, method="vasicek")),
    Case("boxcox_llf", _of(stats.boxcox_llf, 0.3, POSITIVE)),
    Case("yeojohnson_llf", _of(stats.yeojohnson_llf, 0.3, X)),
    Case("rankdata", _of(stats.rankdata, np.round(X, 1), axis=0)),
    Case("quantile", lambda make: stats.quantile(
        make(SIDE), make(np.asarray([0.1, 0.5, 0.9])))),
    Case("trim_mean", _of(stats.trim_mean, X, 0.1)),
    Case("sigmaclip", lambda make: stats.sigmaclip(make(SIDE), 1.5, 1.5)[0]),
    Case("false_discovery_control", _of(stats.false_discovery_control, np.abs(SIDE) / 5)),
    Case("pearsonr", _test(stats.pearsonr, SIDE, OTHER)),
    Case("pearsonr of rows", _test(stats.pearsonr, X, Y, axis=0)),
    Case("spearmanrho", _test(stats.spearmanrho, X, Y)),
    Case("chatterjeexi", _test(stats.chatterjeexi, SIDE, OTHER)),
    Case("pointbiserialr", _test(stats.pointbiserialr, SIDE > 0, OTHER)),
    Case("ttest_1samp", _test(stats.ttest_1samp, X, 0.1)),
    Case("ttest_ind", _test(stats.ttest_ind, X, Y, equal_var=False)),
    Case("ttest_rel", _test(stats.ttest_rel, X, Y)),
    Case("ttest interval", lambda make: list(
        stats.ttest_1samp(make(X), 0.1).confidence_interval(0.9))),
    Case("ttest_ind_from_stats", lambda make: list(stats.ttest_ind_from_stats(
        make(np.mean(X, 0)), make(np.std(X, 0)), 60, make(np.mean(Y, 0)), make(np.std(Y, 0)), 60))),
    Case("f_oneway", _test(stats.f_oneway, X, Y)),
    Case("alexandergovern", _test(stats.alexandergovern, SIDE, OTHER)),
    Case("kruskal", _test(stats.kruskal, SIDE, OTHER)),
    Case("friedmanchisquare", _test(stats.friedmanchisquare, X[:, 0], X[:, 1], X[:, 2])),
    Case("brunnermunzel", _test(stats.brunnermunzel, SIDE, OTHER)),
    Case("mannwhitneyu", _test(stats.mannwhitneyu, SIDE, OTHER)),
    Case("wilcoxon", _test(stats.wilcoxon, SIDE, OTHER)),
    Case("brunnermunzel", _test(stats.brunnermunzel, SIDE, OTHER)),
    Case("bartlett", _test(stats.bartlett, SIDE, OTHER)),
    Case("levene", _test(stats.levene, SIDE, OTHER)),
    Case("fligner", _test(stats.fligner, SIDE, OTHER)),
    Case("ansari", _test(stats.ansari, SIDE, OTHER)),
    Case("mood", _test(stats.mood, X, Y)),
    Case("skewtest", _test(stats.skewtest, X)),
    Case("kurtosistest", _test(stats.kurtosistest, X)),
    Case("normaltest", _test(stats.normaltest, X)),
    Case("jarque_bera", _test(stats.jarque_bera, SIDE)),
    Case("chisquare", _test(stats.chisquare, POSITIVE)),
    Case("power_divergence", _test(stats.power_divergence, POSITIVE, lambda_="cressie-read")),
    Case("combine_pvalues", _test(stats.combine_pvalues, np.abs(SIDE) / 5)),
    Case("cramervonmises_2samp", _test(stats.cramervonmises_2samp, SIDE, OTHER)),
    Case("epps_singleton_2samp", _test(stats.epps_singleton_2samp, SIDE, OTHER)),
    Case("monte_carlo_test", lambda make: stats.monte_carlo_test(
        make(SIDE), lambda size: make(np.random.default_rng(0).standard_normal(size)),
        lambda x, axis: x.__array_namespace__().mean(x, axis=axis), n_resamples=50).pvalue),
    Case("permutation_test", lambda make: stats.permutation_test(
        (make(SIDE), make(OTHER)),
        lambda x, y, axis: x.__array_namespace__().mean(x, axis=axis)
        - x.__array_namespace__().mean(y, axis=axis), n_resamples=50, rng=0,
        vectorized=True).pvalue),
    Case("bootstrap", lambda make: list(stats.bootstrap(
        (make(SIDE),), lambda x, axis: x.__array_namespace__().mean(x, axis=axis),
        n_resamples=50, rng=0, vectorized=True).confidence_interval)),
]

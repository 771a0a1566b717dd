"""Operators of ai.onnx.ml, losses, and optimizers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import numpy_helper

from tecomp import te, topi
from tecomp.onnx.layers import product
from tecomp.onnx.node import (
    LEARNING,
    TRAINING,
    Array,
    OpNode,
    Types,
    host_operator,
    operator,
)

# Losses

@operator("NegativeLogLikelihoodLoss")
def _likelihood_loss(node: OpNode) -> te.Tensor:
    return _loss(node, node.tensor(0))


@operator("SoftmaxCrossEntropyLoss")
def _entropy_loss(node: OpNode) -> list[te.Tensor | None]:
    logs = topi.nn.log_softmax(node.tensor(0), 1)
    return [_loss(node, logs), logs if node.returns(1) else None]


def _loss(node: OpNode, logs: te.Tensor) -> te.Tensor:
    dtype, classes = str(logs.dtype), logs.shape[1]
    weights = node.tensor(2) if node.has(2) else topi.full(
        (classes,), dtype, te.const(1, dtype))
    given = node.attribute("ignore_index")
    ignored = -1 - 2**30 if given is None else given
    targets = topi.cast(node.tensor(1), "int32")
    return topi.nn.nll_loss(logs, targets, weights, node.attribute("reduction", "mean"), ignored)


# Optimizers

def _steps(node: OpNode, states: int) -> list[list[te.Tensor]]:
    """Return the tensor, gradient and states of each optimized tensor."""
    rest = node.tensors()[2:]
    count = len(rest) // (2 + states)
    return [rest[k::count] for k in range(count)]


def _interleave(results: Sequence[Sequence[te.Tensor]]) -> list[te.Tensor]:
    """Return all first results, then all second ones, and so on."""
    return [tensor for group in zip(*results, strict=True) for tensor in group]


def _scalar(x: te.Tensor, dtype: str) -> te.Tensor:
    return topi.cast(topi.reshape(x, ()), dtype)


@operator("Adagrad", domain=TRAINING)
def _adagrad(node: OpNode) -> list[te.Tensor]:
    found = []
    for x, gradient, squares in _steps(node, 1):
        dtype = str(x.dtype)
        decay, norm, epsilon = (
            te.const(node.attribute(name, default), dtype) for name, default in (
                ("decay_factor", 0.0), ("norm_coefficient", 0.0), ("epsilon", 1e-6)))
        count = _scalar(node.tensor(1), dtype)
        rate = topi.divide(_scalar(node.tensor(0), dtype), topi.add(
            topi.multiply(count, decay), te.const(1, dtype)))
        g = topi.add(topi.multiply(x, norm), gradient)
        h = topi.add(squares, topi.multiply(g, g))
        step = topi.divide(topi.multiply(g, rate), topi.add(topi.sqrt(h), epsilon))
        found.append([topi.subtract(x, step), h])
    return _interleave(found)


@operator("Adam", domain=TRAINING)
def _adam(node: OpNode) -> list[te.Tensor]:
    found = []
    for x, gradient, averages, squares in _steps(node, 2):
        dtype = str(x.dtype)
        alpha, beta, norm, post, epsilon = (
            node.attribute(name, default) for name, default in (
                ("alpha", 0.9), ("beta", 0.999), ("norm_coefficient", 0.0),
                ("norm_coefficient_post", 0.0), ("epsilon", 1e-6)))

        def times(y: te.Tensor, factor: float, kind: str = dtype) -> te.Tensor:
            return topi.multiply(y, te.const(factor, kind))

        g = topi.add(times(x, norm), gradient)
        v = topi.add(times(averages, alpha), times(g, 1 - alpha))
        h = topi.add(times(squares, beta), times(topi.multiply(g, g), 1 - beta))
        count, rate = (_scalar(node.tensor(k), dtype) for k in (1, 0))

        def bias(factor: float, exponent: te.Tensor = count, kind: str = dtype) -> te.Tensor:
            return topi.subtract(te.const(1, kind), topi.power(te.const(factor, kind), exponent))

        corrected = topi.divide(topi.multiply(rate, topi.sqrt(bias(beta))), bias(alpha))
        adjusted = topi.where(
            topi.greater(count, te.const(0, dtype)), corrected, rate)
        step = topi.divide(topi.multiply(adjusted, v), topi.add(
            topi.sqrt(h), te.const(epsilon, dtype)))
        found.append([times(topi.subtract(x, step), 1 - post), v, h])
    return _interleave(found)


@operator("Momentum", domain=TRAINING)
def _momentum(node: OpNode) -> list[te.Tensor]:
    found = []
    for x, gradient, velocity in _steps(node, 1):
        dtype = str(x.dtype)
        alpha, beta, norm = (te.const(node.attribute(name), dtype) for name in (
            "alpha", "beta", "norm_coefficient"))
        g = topi.add(topi.multiply(x, norm), gradient)
        count, rate = (_scalar(node.tensor(k), dtype) for k in (1, 0))
        # The first step takes the gradient as it is.
        factor = topi.where(
            topi.greater(count, te.const(0, dtype)), beta, te.const(1, dtype))
        v = topi.add(topi.multiply(velocity, alpha), topi.multiply(g, factor))
        step = v if node.attribute("mode") == "standard" else topi.add(g, topi.multiply(v, alpha))
        found.append([topi.subtract(x, topi.multiply(step, rate)), v])
    return _interleave(found)


# Features

def _row(node: OpNode, name: str, dtype: str) -> te.Tensor:
    values = np.array(node.attribute(name), np.dtype(dtype))
    return node.as_tensor(values)


def _as_float(x: te.Tensor) -> te.Tensor:
    return x if str(x.dtype) == "float32" else topi.cast(x, "float32")


@operator("Scaler", domain=LEARNING)
def _scale(node: OpNode) -> te.Tensor:
    x = _as_float(node.tensor(0))
    if node.attribute("offset"):
        x = topi.subtract(x, _row(node, "offset", "float32"))
    return topi.multiply(x, _row(node, "scale", "float32")) if node.attribute("scale") else x


@operator("Normalizer", domain=LEARNING)
def _normalize(node: OpNode) -> te.Tensor:
    x, kind = _as_float(node.tensor(0)), node.attribute("norm", "MAX")
    norms: dict[str, Callable[[], te.Tensor]] = {
        "MAX": lambda: topi.max(x, -1, True),
        "L1": lambda: topi.sum(topi.abs(x), -1, True),
        "L2": lambda: topi.sqrt(topi.sum(topi.multiply(x, x), -1, True)),
    }
    if kind not in norms:
        raise node.error("the norm {kind} is unknown", kind=kind)
    norm = norms[kind]()
    zero = te.const(0, "float32")
    return topi.where(topi.equal(norm, zero), x, topi.divide(x, norm))


@operator("Binarizer", domain=LEARNING)
def _binarize(node: OpNode) -> te.Tensor:
    x = node.tensor(0)
    return topi.cast(topi.greater(
        x, te.const(node.attribute("threshold", 0.0), str(x.dtype))), str(x.dtype))


@operator("Imputer", domain=LEARNING)
def _impute(node: OpNode) -> te.Tensor:
    x = node.tensor(0)
    is_float = str(x.dtype).startswith("float")
    kind = "float" if is_float else "int64"
    values = node.attribute(f"imputed_value_{kind}s")
    missing = node.attribute(f"replaced_value_{kind}", 0)
    new = node.as_tensor(np.array(values, np.dtype(str(x.dtype))))
    is_missing = topi.isnan(x) if missing != missing else topi.equal(
        x, te.const(missing, str(x.dtype)))
    return topi.where(is_missing, new, x)


@operator("ArrayFeatureExtractor", domain=LEARNING)
def _extract(node: OpNode) -> te.Tensor:
    x, columns = node.tensor(0), node.tensor(1)
    found = topi.take(x, topi.reshape(columns, (columns.shape[-1],)), len(x.shape) - 1)
    return topi.reshape(found, (1, columns.shape[-1])) if len(x.shape) == 1 else found


@operator("FeatureVectorizer", domain=LEARNING)
def _concat_features(node: OpNode) -> te.Tensor:
    return topi.concatenate([_as_float(x) for x in node.tensors()], 1)


@operator("OneHotEncoder", domain=LEARNING)
def _encode_one_hot(node: OpNode) -> te.Tensor:
    x, kinds = node.tensor(0), node.attribute("cats_int64s")
    if not kinds:
        raise node.error("categories that are strings are not supported")
    table = node.as_tensor(np.array(kinds, np.int64))
    result: te.Tensor = te.compute(
        (*x.shape, len(kinds)),
        lambda *i: te.cast(te.cast(x(*i[:-1]), "int64").equal(table(i[-1])), "float32"),
        name="one_hot")
    return result


# Linear models and trees

def _transform(node: OpNode, scores: te.Tensor) -> te.Tensor:
    """Apply the attribute `post_transform` to scores of (batch, classes)."""
    match node.attribute("post_transform", "NONE"):
        case "NONE":
            return scores
        case "LOGISTIC":
            return topi.sigmoid(scores)
        case "SOFTMAX":
            return topi.nn.softmax(scores, -1)
        case "SOFTMAX_ZERO":
            zero = te.const(0, str(scores.dtype))
            return topi.where(topi.equal(scores, zero), zero, topi.nn.softmax(scores, -1))
    raise node.error("the transformation {name} is not supported",
                     name=node.attribute("post_transform"))


def _linear_scores(node: OpNode, targets: int) -> te.Tensor:
    x = _as_float(node.tensor(0))
    if len(x.shape) == 1:
        x = topi.expand_dims(x, 0)
    coefficients = np.array(node.attribute("coefficients"), np.float32)
    if coefficients.size % targets or coefficients.size // targets != x.shape[1]:
        raise node.error("{count} coefficients do not fit {targets} targets of {features} features",
                         count=coefficients.size, targets=targets, features=x.shape[1])
    weights = coefficients.reshape(targets, -1).T
    scores = product(x, node.as_tensor(np.ascontiguousarray(weights)))
    intercepts = node.attribute("intercepts")
    return topi.add(scores, _row(node, "intercepts", "float32")) if intercepts else scores


@operator("LinearRegressor", domain=LEARNING)
def _linear_regression(node: OpNode) -> te.Tensor:
    return _transform(node, _linear_scores(node, node.attribute("targets", 1)))


@operator("LinearClassifier", domain=LEARNING)
def _linear_classifier(node: OpNode) -> list[te.Tensor]:
    labels = _labels(node, "classlabels_ints")
    intercepts = node.attribute("intercepts") or [0.0] * len(labels)
    scores = _linear_scores(node, len(intercepts))
    if scores.shape[1] == 1 and len(labels) == 2:
        return _binary(node, scores, labels, 0.0, _transform(node, scores), False)
    return [_best_label(node, scores, labels), _transform(node, scores)]


def _labels(node: OpNode, name: str) -> Array:
    labels = node.attribute(name)
    if not labels:
        raise node.error("the labels of classes are missing")
    return np.array(labels, np.int64)


def _best_label(node: OpNode, scores: te.Tensor, labels: Array) -> te.Tensor:
    best = topi.argmax(scores, 1, False)
    return topi.take(node.as_tensor(labels), best, 0)


def _binary(
    node: OpNode, score: te.Tensor, labels: Array, threshold: float, positive: te.Tensor,
    is_probability: bool,
) -> list[te.Tensor]:
    """Return the label and both scores for one score of two classes."""
    low, high = (te.const(int(label), "int64") for label in labels)
    kind = str(score.dtype)
    label: te.Tensor = te.compute(
        score.shape[:1], lambda n: te.select(score(n, 0) > te.const(threshold, kind), high, low),
        name="label")
    is_complement = is_probability or node.attribute("post_transform", "NONE") == "LOGISTIC"
    one = te.const(1, kind)
    both: te.Tensor = te.compute(
        (score.shape[0], 2), lambda n, k: te.select(
            te.all(k > 0), positive(n, 0),
            one - positive(n, 0) if is_complement else -positive(n, 0)), name="both")
    return [label, both]


@dataclass(frozen=True)
class _Trees:
    """Ensemble of trees; a leaf is its own child.

    Attributes:
        roots: Root of each tree.
        feature, threshold, mode, yes, no, missing: Properties of each node.
        weights: Weight of each node for each target.
        depth: Number of decisions from a root to the deepest leaf.
    """

    roots: Array
    feature: Array
    threshold: Array
    mode: Array
    yes: Array
    no: Array
    missing: Array
    weights: Array
    depth: int


_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "MEMBER")


def _depth(node: OpNode, roots: Sequence[int], yes: Array, no: Array, is_leaf: Array) -> int:
    """Return the depth of trees.

    Raises:
        ModelError: If a node is its own descendant.
    """
    level, depth = np.unique(np.array(roots, np.int64)), 0
    while (inner := level[~is_leaf[level]]).size:
        level = np.unique(np.concatenate([yes[inner], no[inner]]))
        depth += 1
        if depth > len(yes):
            raise node.error("a tree contains a cycle")
    return depth


def _trees_of_nodes(node: OpNode, prefix: str, targets: int, dtype: str) -> _Trees:
    """Return the trees of `TreeEnsembleClassifier` and `TreeEnsembleRegressor`."""
    trees, ids = (np.array(node.attribute(f"nodes_{name}"), np.int64)
                  for name in ("treeids", "nodeids"))
    place = {key: k for k, key in enumerate(zip(trees.tolist(), ids.tolist(), strict=True))}
    names = node.attribute("nodes_modes")
    unknown = {*names} - {*_MODES, "LEAF"}
    if unknown or len(names) != len(ids):
        raise node.error("the modes of nodes are malformed: {modes}", modes=sorted(unknown))
    is_leaf = np.array([name == "LEAF" for name in names])
    local = np.arange(len(ids))

    def children(name: str) -> Array:
        targets_of = node.attribute(f"nodes_{name}nodeids")
        return np.array([
            local[k] if is_leaf[k] else place[(int(trees[k]), int(targets_of[k]))]
            for k in range(len(ids))])

    yes, no = children("true"), children("false")
    inner = ~is_leaf
    has_parent = {*yes[inner].tolist(), *no[inner].tolist()}
    # The first node of a tree that no other node refers to is its root.
    roots: dict[int, int] = {}
    for k, tree in enumerate(trees.tolist()):
        if k not in has_parent:
            roots.setdefault(tree, k)
    if len(roots) != len({*trees.tolist()}):
        raise node.error("a tree contains a cycle")
    weights = np.zeros((len(ids), targets), np.dtype(dtype))
    for tree, leaf, target, weight in zip(*(
        node.attribute(f"{prefix}_{name}") for name in ("treeids", "nodeids", "ids")),
        _values(node, f"{prefix}_weights"), strict=True,
    ):
        weights[place[(tree, leaf)], target] += weight
    missing = node.attribute("nodes_missing_value_tracks_true") or [0] * len(ids)
    mode = np.array([_MODES.index(name) if name in _MODES else 0 for name in names], np.int32)
    first = [*roots.values()]
    return _Trees(
        np.array(first, np.int64), np.where(is_leaf, 0, node.attribute("nodes_featureids")),
        np.array(_values(node, "nodes_values"), np.dtype(dtype)), mode, yes, no,
        np.array(missing, bool), weights, _depth(node, first, yes, no, is_leaf))


def _values(node: OpNode, name: str) -> Any:
    tensor = node.attribute(f"{name}_as_tensor")
    return numpy_helper.to_array(tensor) if tensor is not None else node.attribute(name)


def _leaves(node: OpNode, x: te.Tensor, trees: _Trees) -> te.Tensor:
    """Return the leaf of each row and tree."""
    feature, yes, no = (node.as_tensor(np.asarray(a, np.int64)) for a in (
        trees.feature, trees.yes, trees.no))
    threshold, missing = node.as_tensor(trees.threshold), node.as_tensor(trees.missing)
    modes = sorted({*trees.mode.tolist()})
    mode = node.as_tensor(trees.mode)
    has_missing = bool(trees.missing.any())
    roots = node.as_tensor(trees.roots)
    shape = (x.shape[0], len(trees.roots))
    at: te.Tensor = te.compute(shape, lambda n, t: roots(t), name="root")
    compare: list[Callable[[te.Expr, te.Expr], te.Expr]] = [
        lambda a, b: a <= b, lambda a, b: a < b, lambda a, b: a >= b, lambda a, b: a > b,
        lambda a, b: a.equal(b), lambda a, b: te.logical_not(a.equal(b)),
    ]

    def descend(before: te.Tensor) -> te.Tensor:
        def element(n: te.Expr, t: te.Expr) -> te.Expr:
            place = before(n, t)
            value = te.cast(x(n, feature(place)), threshold.dtype)
            bound = threshold(place)
            holds = compare[modes[0]](value, bound)
            for kind in modes[1:]:
                holds = te.select(
                    mode(place).equal(kind), compare[kind](value, bound), holds)
            if has_missing:
                holds = te.any(holds, te.all(te.isnan(value), missing(place)))
            return te.select(holds, yes(place), no(place))

        tensor: te.Tensor = te.compute(shape, element, name="node")
        return tensor

    for _ in range(trees.depth):
        at = descend(at)
    return at


def _aggregate(node: OpNode, x: te.Tensor, trees: _Trees, function: str) -> te.Tensor:
    """Return the weights of the leaves of all trees for each target."""
    at, weights = _leaves(node, x, trees), node.as_tensor(trees.weights)
    t = te.reduce_axis((0, len(trees.roots)), name="t")
    kind = {"SUM": te.sum, "AVERAGE": te.sum, "MIN": te.min, "MAX": te.max}.get(function)
    if kind is None:
        raise node.error("the aggregation {name} is unknown", name=function)
    reduce: Any = kind
    found: te.Tensor = te.compute(
        (x.shape[0], trees.weights.shape[1]),
        lambda n, c: reduce(weights(at(n, t), c), axis=t), name="scores")
    if function == "AVERAGE":
        found = topi.divide(found, te.const(len(trees.roots), str(found.dtype)))
    return found


def _with_base(node: OpNode, scores: te.Tensor) -> te.Tensor:
    base = _values(node, "base_values")
    return scores if base is None or not len(base) else topi.add(
        scores, node.as_tensor(np.array(base, np.dtype(str(scores.dtype)))))


def _tree_dtype(x: te.Tensor) -> str:
    return "float64" if str(x.dtype) == "float64" else "float32"


@operator("TreeEnsembleRegressor", domain=LEARNING)
def _tree_regression(node: OpNode) -> te.Tensor:
    x = node.tensor(0)
    trees = _trees_of_nodes(node, "target", node.attribute("n_targets", 1), _tree_dtype(x))
    found = _aggregate(node, x, trees, node.attribute("aggregate_function", "SUM"))
    return topi.cast(_transform(node, _with_base(node, found)), "float32")


@operator("TreeEnsembleClassifier", domain=LEARNING)
def _tree_classifier(node: OpNode) -> list[te.Tensor]:
    x, labels = node.tensor(0), _labels(node, "classlabels_int64s")
    targets = {*node.attribute("class_ids")}
    trees = _trees_of_nodes(node, "class", max(len(labels), 1), _tree_dtype(x))
    scores = _aggregate(node, x, trees, "SUM")
    if len(labels) == 2 and len(targets) == 1:
        (target,) = targets
        base = _values(node, "base_values")
        one: te.Tensor = te.compute(
            (x.shape[0], 1), lambda n, k: scores(n, target), name="score")
        if base is not None and len(base):
            one = topi.add(one, te.const(float(base[-1]), str(one.dtype)))
        # Positive weights are probabilities.
        is_probability = bool((trees.weights >= 0).all()) and node.attribute(
            "post_transform", "NONE") == "NONE"
        threshold = 0.5 if bool((trees.weights >= 0).all()) else 0.0
        label, both = _binary(
            node, one, labels, threshold, _transform(node, one), is_probability)
        return [label, topi.cast(both, "float32")]
    scores = _with_base(node, scores)
    return [_best_label(node, scores, labels), topi.cast(_transform(node, scores), "float32")]


@operator("TreeEnsemble", domain=LEARNING)
def _tree_ensemble(node: OpNode) -> te.Tensor:
    x = node.tensor(0)
    trees = _trees_of_arrays(node)
    function = ("AVERAGE", "SUM", "MIN", "MAX")[node.attribute("aggregate_function", 1)]
    scores = _aggregate(node, x, trees, function)
    names = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
    named = OpNode(node.kind, node.name, [], {
        "post_transform": names[node.attribute("post_transform", 0)]}, 1, node.opset)
    return _transform(named, scores)


def _trees_of_arrays(node: OpNode) -> _Trees:
    """Return the trees of `TreeEnsemble`, whose leaves come after the inner nodes."""
    splits = numpy_helper.to_array(node.attribute("nodes_splits"))
    modes = numpy_helper.to_array(node.attribute("nodes_modes")).astype(np.int32)
    leaf_weights = numpy_helper.to_array(node.attribute("leaf_weights"))
    inner, leaves = len(splits), len(leaf_weights)
    local = np.arange(inner + leaves)

    def children(name: str) -> Array:
        is_leaf = np.array(node.attribute(f"nodes_{name}leafs"), bool)
        ids = np.array(node.attribute(f"nodes_{name}nodeids"), np.int64)
        return np.concatenate([np.where(is_leaf, ids + inner, ids), local[inner:]])

    yes, no = children("true"), children("false")
    weights = np.zeros((inner + leaves, node.attribute("n_targets", 1)), leaf_weights.dtype)
    for leaf, target in enumerate(node.attribute("leaf_targetids")):
        weights[inner + leaf, target] += leaf_weights[leaf]
    feature = np.array([*node.attribute("nodes_featureids"), *[0] * leaves], np.int64)
    missing = node.attribute("nodes_missing_value_tracks_true") or [0] * inner
    threshold = np.concatenate([splits, np.zeros(leaves, splits.dtype)])
    is_leaf = local >= inner
    roots = np.array(node.attribute("tree_roots"), np.int64)
    found = _Trees(
        roots, feature, threshold, np.concatenate([modes, np.zeros(leaves, np.int32)]), yes, no,
        np.array([*missing, *[0] * leaves], bool), weights,
        _depth(node, roots.tolist(), yes, no, is_leaf))
    return _without_sets(node, found) if (modes == 6).any() else found


def _without_sets(node: OpNode, trees: _Trees) -> _Trees:
    """Return trees in which membership in a set is a chain of comparisons with its members."""
    values = numpy_helper.to_array(node.attribute("membership_values"))
    ends = np.flatnonzero(np.isnan(values))
    columns: dict[str, list[Any]] = {name: getattr(trees, name).tolist() for name in (
        "feature", "threshold", "mode", "yes", "no", "missing")}
    weights, begin, longest = trees.weights, 0, 0
    sets = iter(ends.tolist())
    for k in np.flatnonzero(trees.mode == 6).tolist():
        end = next(sets)
        members, begin = values[begin:end].tolist(), end + 1
        place, last = k, columns["no"][k]
        for number, member in enumerate(members):
            columns["mode"][place], columns["threshold"][place] = 4, member
            if number + 1 == len(members):
                columns["no"][place] = last
                break
            new = len(columns["mode"])
            for name in columns:
                columns[name].append(columns[name][k])
            columns["no"][place] = new
            place = new
        longest = max(longest, len(members))
        weights = np.concatenate(
            [weights, np.zeros((len(columns["mode"]) - len(weights), weights.shape[1]),
                               weights.dtype)])
    arrays = {name: np.array(column, getattr(trees, name).dtype)
              for name, column in columns.items()}
    return _Trees(trees.roots, weights=weights, depth=trees.depth * longest, **arrays)


# Labels

def _encoder_values(node: OpNode, kind: str) -> tuple[list[Any], str] | None:
    """Return the keys or values of a LabelEncoder, and their dtype."""
    tensor = node.attribute(f"{kind}_tensor")
    if tensor is not None:
        array = numpy_helper.to_array(tensor)
        return array.reshape(-1).tolist(), "str" if array.dtype.kind in "OT" else str(array.dtype)
    for name, dtype in (("strings", "str"), ("int64s", "int64"), ("floats", "float32")):
        found = node.attribute(f"{kind}_{name}")
        if found is not None:
            return [*found], dtype
    return None


def _encoder_types(node: OpNode) -> Types:
    values = _encoder_values(node, "values")
    dtype = "int64" if values is None else values[1]
    shape = getattr(node.inputs[0], "shape", ())
    return [(dtype, tuple(n if isinstance(n, int) else None for n in shape))]


@host_operator("LabelEncoder", domain=LEARNING, types=_encoder_types)
def _encode_labels(node: OpNode, inputs: Sequence[Any]) -> Array:
    x = inputs[0]
    keys, values = _encoder_values(node, "keys"), _encoder_values(node, "values")
    if keys is None or values is None:
        raise node.error("the keys or values are missing")
    default = _encoder_default(node, values[1])
    table = dict(zip(keys[0], values[0], strict=True))
    nan = next((value for key, value in table.items() if key != key), default)
    found = [nan if key != key else table.get(key, default) for key in x.reshape(-1).tolist()]
    return np.array(found, str if values[1] == "str" else np.dtype(values[1])).reshape(x.shape)


def _encoder_default(node: OpNode, dtype: str) -> Any:
    tensor = node.attribute("default_tensor")
    if tensor is not None:
        return numpy_helper.to_array(tensor).reshape(-1)[0]
    names: dict[str, tuple[str, Any]] = {
        "str": ("default_string", "_Unused"), "int64": ("default_int64", -1)}
    name, default = names.get(dtype, ("default_float", -0.0))
    return node.attribute(name, default)


@host_operator("ZipMap", domain=LEARNING)
def _zip_map(node: OpNode, inputs: Sequence[Any]) -> Any:
    labels = node.attribute("classlabels_strings") or node.attribute("classlabels_int64s")
    return ([dict(zip(labels, row.tolist(), strict=True)) for row in inputs[0]],)

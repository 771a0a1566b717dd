"""Models as exporters write them: fused transformers, caches, recurrence, trees, shapes of data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import tecomp.onnx
from tecomp.errors import CallError, ModelError
from tecomp.onnx import load
from tests.messages import Diagnostic, diagnostic
from tests.onnx.operators_table import DOCUMENT, document

Array = np.ndarray[Any, Any]
node = helper.make_node
MICROSOFT, LEARNING = "com.microsoft", "ai.onnx.ml"
KINDS = {
    np.dtype("float32"): TensorProto.FLOAT, np.dtype("int64"): TensorProto.INT64,
    np.dtype("int32"): TensorProto.INT32, np.dtype("bool"): TensorProto.BOOL,
    np.dtype("float64"): TensorProto.DOUBLE,
}


def model_of(
    nodes: Sequence[Any], feeds: dict[str, Array], outputs: dict[str, tuple[int, int]],
    weights: dict[str, Array], symbolic: Mapping[str, Sequence[Any]] | None = None, opset: int = 21,
) -> onnx.ModelProto:
    """Return a model whose inputs have the types of arrays; `symbolic` replaces shapes."""
    shapes: dict[str, Any] = {name: x.shape for name, x in feeds.items()} | dict(symbolic or {})
    values = [helper.make_tensor_value_info(name, KINDS[x.dtype], shapes[name])
              for name, x in feeds.items()]
    graph = helper.make_graph(
        nodes, "graph", values,
        [helper.make_tensor_value_info(name, kind, [f"{name}{k}" for k in range(rank)])
         for name, (kind, rank) in outputs.items()],
        [numpy_helper.from_array(x, name) for name, x in weights.items()])
    return helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1),
        helper.make_opsetid(LEARNING, 3)])


def exact(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [*session.run(None, feeds)]


def check(model: onnx.ModelProto, *runs: dict[str, Array], tolerance: float = 2e-4) -> Any:
    compiled = load(model)
    for feeds in runs:
        for got, expected in zip(
            compiled.run(feeds).values(), exact(model, feeds), strict=True
        ):
            assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
            if expected.dtype == object:
                np.testing.assert_array_equal(got, expected)
            else:
                np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance / 10)
    return compiled


def draw(seed: int, *shape: int, scale: float = 1.0) -> Array:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


F, I64 = TensorProto.FLOAT, TensorProto.INT64


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("direction", ["bidirectional", "reverse"])
def test_recurrent_layers_with_lengths(kind: str, direction: str) -> None:
    gates, count = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], 1 + (direction == "bidirectional")
    weights = {"w": draw(0, count, gates * 6, 5, scale=0.5), "r": draw(1, count, gates * 6, 6, scale=0.5),
               "b": draw(2, count, gates * 12, scale=0.2)}
    outputs = {"y": (F, 4), "h": (F, 3)} | ({"c": (F, 3)} if kind == "LSTM" else {})
    feeds = {"x": draw(3, 7, 3, 5), "lengths": np.array([7, 4, 2], np.int32)}
    check(model_of(
        [node(kind, ["x", "w", "r", "b", "lengths"], [*outputs], hidden_size=6, direction=direction)],
        feeds, outputs, weights, {"x": ["steps", 3, 5]}), feeds)


@pytest.mark.exhaustive
def test_an_encoder_with_fused_operators() -> None:
    """The form of BERT after the optimizer of ONNX Runtime."""
    width, heads = 32, 4
    weights = {
        "words": draw(0, 50, width), "places": draw(1, 16, width), "kinds": draw(2, 2, width),
        "g": draw(3, width), "b": draw(4, width), "qkv": draw(5, width, 3 * width, scale=0.2),
        "qkv_b": draw(6, 3 * width, scale=0.1), "o": draw(7, width, width, scale=0.2),
        "o_b": draw(8, width, scale=0.1), "up": draw(9, width, 64, scale=0.2),
        "up_b": draw(10, 64, scale=0.1), "down": draw(11, 64, width, scale=0.2),
    }
    nodes = [
        node("EmbedLayerNormalization",
             ["ids", "types", "words", "places", "kinds", "g", "b", "mask"], ["e", "lengths"],
             domain=MICROSOFT),
        node("Attention", ["e", "qkv", "qkv_b", "lengths"], ["a"], num_heads=heads,
             domain=MICROSOFT),
        node("MatMul", ["a", "o"], ["p"]),
        node("SkipLayerNormalization", ["p", "e", "g", "b", "o_b"], ["n"], domain=MICROSOFT),
        node("MatMul", ["n", "up"], ["u"]),
        node("FastGelu", ["u", "up_b"], ["f"], domain=MICROSOFT),
        node("MatMul", ["f", "down"], ["d"]),
        node("SkipLayerNormalization", ["d", "n", "g", "b"], ["y"], domain=MICROSOFT),
    ]

    def feeds(batch: int, length: int) -> dict[str, Array]:
        random = np.random.default_rng(length)
        mask = np.ones((batch, length), np.int32)
        mask[0, length - 1:] = 0
        return {"ids": random.integers(0, 50, (batch, length), np.int32),
                "types": random.integers(0, 2, (batch, length), np.int32), "mask": mask}

    shape = ["batch", "length"]
    check(model_of(nodes, feeds(2, 8), {"y": (F, 3)}, weights, dict.fromkeys(("ids", "types", "mask"), shape)),
          feeds(2, 8), feeds(1, 5))


@pytest.mark.exhaustive
def test_decoding_with_a_cache() -> None:
    """Keys and values of past tokens are inputs; `GroupQueryAttention` rotates and appends."""
    heads, groups, size = 4, 2, 16  # ONNX Runtime takes multiples of 16
    weights = {"q": draw(0, 32, heads * size, scale=0.2), "k": draw(1, 32, groups * size, scale=0.2),
               "v": draw(2, 32, groups * size, scale=0.2), "g": draw(3, 32),
               "cos": np.cos(draw(4, 32, size // 2)), "sin": np.sin(draw(4, 32, size // 2)),
               "axis": np.array([1]), "one": np.array([1])}
    nodes = [
        node("SimplifiedLayerNormalization", ["x", "g"], ["n"], epsilon=1e-5),
        *(node("MatMul", ["n", name], [f"{name}x"]) for name in "qkv"),
        node("ReduceSum", ["mask", "axis"], ["sums"], keepdims=0),
        node("Sub", ["sums", "one"], ["last"]), node("Cast", ["last"], ["lengths"], to=TensorProto.INT32),
        node("Shape", ["mask"], ["total_shape"]), node("Gather", ["total_shape", "axis"], ["total64"]),
        node("Cast", ["total64"], ["total"], to=TensorProto.INT32),
        node("GroupQueryAttention",
             ["qx", "kx", "vx", "past_k", "past_v", "lengths", "total", "cos", "sin"],
             ["a", "new_k", "new_v"], num_heads=heads, kv_num_heads=groups, do_rotary=1,
             domain=MICROSOFT),
    ]

    def feeds(new: int, past: int) -> dict[str, Array]:
        return {"x": draw(new, 1, new, 32), "mask": np.ones((1, new + past), np.int64),
                "past_k": draw(5, 1, groups, past, size), "past_v": draw(6, 1, groups, past, size)}

    symbolic = {"x": [1, "new", 32], "mask": [1, "total"],
                "past_k": [1, groups, "past", size], "past_v": [1, groups, "past", size]}
    check(model_of(nodes, feeds(1, 3), {"a": (F, 3), "new_k": (F, 4), "new_v": (F, 4)}, weights, symbolic),
          feeds(1, 3), feeds(1, 9), feeds(4, 0))


@pytest.mark.exhaustive
def test_attention_of_onnx_with_a_cache() -> None:
    nodes = [node("Attention", ["q", "k", "v", "", "past_k", "past_v"], ["y", "new_k", "new_v"],
                  q_num_heads=4, kv_num_heads=2, is_causal=1)]

    def feeds(new: int, past: int) -> dict[str, Array]:
        return {"q": draw(0, 2, new, 32), "k": draw(1, 2, new, 16), "v": draw(2, 2, new, 16),
                "past_k": draw(3, 2, 2, past, 8), "past_v": draw(4, 2, 2, past, 8)}

    symbolic = {name: [2, "new", 32 if name == "q" else 16] for name in "qkv"} | {
        name: [2, 2, "past", 8] for name in ("past_k", "past_v")}
    check(model_of(nodes, feeds(1, 3), {"y": (F, 3), "new_k": (F, 4), "new_v": (F, 4)}, {}, symbolic, opset=23),
          feeds(1, 6))


@pytest.mark.parametrize("bits", [4, 8])
def test_weights_of_few_bits(bits: int) -> None:
    random = np.random.default_rng(0)
    size, columns, block = 64, 24, 32
    weights = {
        "w": random.integers(0, 256, (columns, size // block, block * bits // 8), np.uint8),
        "scales": draw(1, columns * size // block, scale=0.1),
        "zeros": random.integers(0, 256, columns * (size // block * bits // 8), np.uint8)}
    feeds = {"x": draw(2, 3, size)}
    check(model_of([node(
        "MatMulNBits", ["x", "w", "scales", "zeros"], ["y"], K=size, N=columns, bits=bits,
        block_size=block, domain=MICROSOFT)], feeds, {"y": (F, 2)}, weights), feeds, tolerance=2e-3)


def tree_attributes(leaves: int, trees: int, features: int, classes: int) -> dict[str, Any]:
    """Return complete random trees."""
    random = np.random.default_rng(0)
    rows: dict[str, list[Any]] = {f"nodes_{name}": [] for name in (
        "treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")}
    targets: dict[str, list[Any]] = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(trees):
        for k in range(2 * leaves - 1):
            is_leaf = k >= leaves - 1
            values = (tree, k, int(random.integers(features)), float(random.standard_normal()),
                      "LEAF" if is_leaf else "BRANCH_LEQ", 0 if is_leaf else 2 * k + 1,
                      0 if is_leaf else 2 * k + 2)
            for name, value in zip(rows, values, strict=True):
                rows[name].append(value)
            if is_leaf:
                for target in range(classes):
                    weight = float(random.random() / trees)
                    for name, value in zip(targets, (tree, k, target, weight), strict=True):
                        targets[name].append(value)
    return rows | {f"class_{name}": values for name, values in targets.items()}


def test_a_pipeline_with_trees() -> None:
    """A scaler and a forest with labels that are strings, as converters of pipelines write them."""
    labels = ["ash", "beech", "elm"]
    nodes = [
        node("Scaler", ["x"], ["s"], offset=[0.1] * 5, scale=[1.5, 2, 0.5, 1, 1], domain=LEARNING),
        node("Normalizer", ["s"], ["n"], norm="L2", domain=LEARNING),
        node("TreeEnsembleClassifier", ["n"], ["label", "odds"], classlabels_strings=labels,
             domain=LEARNING, **tree_attributes(8, 10, 5, 3)),
    ]
    feeds = {"x": draw(0, 40, 5)}
    check(model_of(nodes, feeds, {"label": (TensorProto.STRING, 1), "odds": (F, 2)}, {}, {"x": ["n", 5]}),
          feeds, {"x": draw(1, 3, 5)})


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize(("rows", "transform"), [
    (1, "LOGISTIC"), (3, "SOFTMAX"), (3, "NONE"), (3, "LOGISTIC")])
def test_linear_classifiers(rows: int, transform: str) -> None:
    feeds = {"x": draw(0, 20, 4)}
    check(model_of([node(
        "LinearClassifier", ["x"], ["label", "odds"], domain=LEARNING, post_transform=transform,
        coefficients=draw(1, rows * 4).tolist(), intercepts=draw(2, rows).tolist(),
        classlabels_ints=[*range(max(rows, 2))])], feeds, {"label": (I64, 1), "odds": (F, 2)}, {}), feeds)


def test_boxes_of_a_detector() -> None:
    """The number of boxes is decided by data; one compilation serves all of them."""
    nodes = [
        node("Sigmoid", ["logits"], ["scores"]),
        node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["chosen"]),
        node("Gather", ["chosen", "two"], ["places"], axis=1),
        node("Gather", ["boxes", "places"], ["found"], axis=1),
        node("Mul", ["found", "scale"], ["y"]),
    ]
    weights = {"most": np.array([5]), "overlap": np.array([0.5], np.float32),
               "least": np.array([0.4], np.float32), "two": np.array(2),
               "scale": np.array(2, np.float32)}

    def feeds(seed: int) -> dict[str, Array]:
        corner = np.random.default_rng(seed).random((1, 30, 2)).astype(np.float32)
        size = np.random.default_rng(seed + 1).random((1, 30, 2)).astype(np.float32)
        return {"boxes": np.concatenate([corner, corner + size], 2), "logits": draw(seed, 1, 2, 30)}

    model = check(model_of(nodes, feeds(0), {"y": (F, 3)}, weights), *map(feeds, range(4)))
    assert len(model.programs) == 2
    with pytest.raises(CallError) as error:
        _ = model.program
    assert diagnostic(error.value) == Diagnostic("invalid-value", count=3)


def test_elements_that_are_not_zero() -> None:
    nodes = [node("NonZero", ["x"], ["places"]), node("Transpose", ["places"], ["t"]),
             node("GatherND", ["x", "t"], ["found"]), node("ReduceSum", ["found"], ["y"], keepdims=0)]
    runs = [{"x": (draw(k, 4, 5) > 0.3).astype(np.float32) * draw(k, 4, 5)} for k in range(3)]
    check(model_of(nodes, runs[0], {"y": (F, 0), "found": (F, 1)}, {}), *runs)


def loop_body() -> onnx.GraphProto:
    def value(name: str, kind: int, shape: Sequence[int]) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    return helper.make_graph([
        node("Mul", ["state", "w"], ["next"]), node("ReduceSum", ["next"], ["size"], keepdims=0),
        node("Less", ["size", "limit"], ["goes_on"]), node("Identity", ["next"], ["row"]),
    ], "body", [value("trip", I64, []), value("cond", TensorProto.BOOL, []), value("state", F, [3])],
        [value("goes_on", TensorProto.BOOL, []), value("next", F, [3]), value("row", F, [3])])


def test_a_loop_whose_end_data_decides() -> None:
    nodes = [node("Loop", ["", "start", "x"], ["last", "rows"], body=loop_body()),
             node("Exp", ["last"], ["y"])]
    weights = {"w": np.full(3, 1.5, np.float32), "start": np.array(True)}
    runs = [{"x": draw(k, 3) ** 2, "limit": np.array(9, np.float32)} for k in range(3)]
    check(model_of(nodes, runs[0], {"last": (F, 1), "rows": (F, 2), "y": (F, 1)}, weights), *runs)


def test_a_loop_with_a_known_number_of_iterations_is_part_of_a_program() -> None:
    body = loop_body()
    body.node[2].CopyFrom(node("Identity", ["cond"], ["goes_on"]))
    nodes = [node("Loop", ["trips", "", "x"], ["last", "rows"], body=body)]
    weights = {"w": np.full(3, 1.5, np.float32), "trips": np.array(4)}
    feeds = {"x": draw(0, 3)}
    model = check(model_of(nodes, feeds, {"last": (F, 1), "rows": (F, 2)}, weights), feeds)
    assert len(model.program.kernels) > 0


def branches() -> dict[str, onnx.GraphProto]:
    def branch(name: str, last: Any) -> onnx.GraphProto:
        return helper.make_graph(
            [last], name, [], [helper.make_tensor_value_info(f"{name}_y", F, ["rows", 2])])

    return {"then_branch": branch("a", node("Concat", ["x", "x"], ["a_y"], axis=0)),
            "else_branch": branch("b", node("Neg", ["x"], ["b_y"]))}


def test_a_branch_that_data_decides() -> None:
    nodes = [node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Greater", ["sum", "zero"], ["c"]),
             node("If", ["c"], ["b"], **branches()), node("Abs", ["b"], ["y"])]
    runs = [{"x": draw(k, 4, 2)} for k in range(4)]
    model = check(model_of(nodes, runs[0], {"y": (F, 2)}, {"zero": np.array(0, np.float32)},
                           {"x": ["n", 2]}), *runs)
    assert len(model.plan.steps[-1].plans) == 2  # one per branch


def test_a_shape_that_data_decides() -> None:
    nodes = [node("Reshape", ["x", "shape"], ["r"]), node("Relu", ["r"], ["p"]),
             node("Slice", ["p", "first", "last"], ["y"])]
    runs = [{"x": draw(0, 24), "shape": np.array(shape), "first": np.array([1]),
             "last": np.array([last])} for shape, last in (([4, 6], 3), ([6, 4], 5), ([8, -1], 9))]
    check(model_of(nodes, runs[0], {"y": (F, 2)}, {}), *runs)


def test_sequences_of_known_length() -> None:
    nodes = [node("SplitToSequence", ["x", "sizes"], ["s"], axis=1), node("SequenceAt", ["s", "one"], ["a"]),
             node("SequenceInsert", ["s", "a"], ["t"]), node("ConcatFromSequence", ["t"], ["y"], axis=1)]
    weights = {"sizes": np.array([2, 3, 1]), "one": np.array(1)}
    model = check(model_of(nodes, {"x": draw(0, 4, 6)}, {"y": (F, 2)}, weights), {"x": draw(0, 4, 6)})
    assert len(model.program.kernels) > 0


def test_operators_that_are_not_supported_in_inner_graphs_are_listed() -> None:
    graphs = branches()
    graphs["else_branch"].node[0].op_type = "Unknown"
    graphs["else_branch"].node[0].domain = "example"
    nodes = [node("If", ["c"], ["y"], **graphs)]
    model = model_of(nodes, {"x": draw(0, 2, 2), "c": np.array(True)}, {"y": (F, 2)}, {})
    model.opset_import.append(helper.make_opsetid("example", 1))
    with pytest.raises(ModelError) as error:
        load(model)
    assert error.value.kind == "unsupported-node"
    assert "Unknown" in str(error.value.parameters["problems"])


def test_the_table_of_operators_is_current() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document()


def test_the_report_lists_what_runs_where() -> None:
    nodes = [node("NonZero", ["x"], ["places"], name="where"),
             node("Cast", ["places"], ["y"], to=TensorProto.FLOAT)]
    report = tecomp.onnx.check(model_of(nodes, {"x": draw(0, 2, 3)}, {"y": (F, 2)}, {}))
    assert report.is_supported
    assert [(x.name, x.operator) for x in report.remarks] == [("where", "NonZero")]
    assert report.kernels
    assert sum(kernel.share for kernel in report.kernels) == pytest.approx(1)
    nodes[0].domain, nodes[0].op_type = "example", "Unknown"
    model = model_of(nodes, {"x": draw(0, 2, 3)}, {"y": (F, 2)}, {})
    model.opset_import.append(helper.make_opsetid("example", 1))
    report = tecomp.onnx.check(model)
    assert not report.is_supported
    assert [(x.name, x.operator) for x in report.unsupported] == [("where", "Unknown")]

"""Models: results equal those of ONNX Runtime, sizes stay symbolic, bad files are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tecomp.errors import CallError, ModelError
from tecomp.onnx import load
from tests.messages import Diagnostic, diagnostic

Array = np.ndarray[Any, Any]
node = helper.make_node


def model_of(
    nodes: Sequence[Any], inputs: Mapping[str, Sequence[Any]], outputs: dict[str, int],
    weights: dict[str, Array], opset: int = 17,
) -> onnx.ModelProto:
    def value(name: str, shape: Any) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    graph = helper.make_graph(
        nodes, "graph", [value(name, shape) for name, shape in inputs.items()],
        [value(name, [f"{name}{k}" for k in range(rank)]) for name, rank in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def exact(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [*session.run(None, feeds)]


def weights_of(**shapes: Sequence[int]) -> dict[str, Array]:
    random = np.random.default_rng(0)
    return {
        name: (random.standard_normal(shape) * 0.3).astype(np.float32)
        for name, shape in shapes.items()
    }


def check(model: onnx.ModelProto, *feeds: dict[str, Array]) -> None:
    compiled = load(model)
    for arrays in feeds:
        results = compiled.run(arrays)
        for got, expected in zip(results.values(), exact(model, arrays), strict=True):
            assert got.shape == expected.shape
            np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-5)


def draw(*shape: int) -> Array:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def perceptron() -> onnx.ModelProto:
    weights = weights_of(w1=(20, 32), b1=(32,), w2=(10, 32), b2=(10,))
    return model_of([
        node("Gemm", ["x", "w1", "b1"], ["h"]), node("Relu", ["h"], ["r"]),
        node("Gemm", ["r", "w2", "b2"], ["z"], transB=1), node("Softmax", ["z"], ["y"], axis=-1),
    ], {"x": ["batch", 20]}, {"y": 2}, weights)


def test_a_perceptron_of_any_batch() -> None:
    check(perceptron(), *({"x": draw(n, 20)} for n in (1, 3, 17)))


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("opset", [8, 13, 17])
def test_a_residual_block(opset: int) -> None:
    weights = weights_of(
        w1=(16, 8, 3, 3), w2=(16, 16, 3, 3), w3=(16, 8, 1, 1), scale=(16,), bias=(16,), mean=(16,),
        dense=(16, 5),
    ) | {"variance": np.linspace(0.5, 2, 16, dtype=np.float32)}
    same = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    statistics = ["scale", "bias", "mean", "variance"]
    nodes = [
        node("Conv", ["x", "w1"], ["c1"], strides=[2, 2], **same),
        node("BatchNormalization", ["c1", *statistics], ["n1"]), node("Relu", ["n1"], ["r1"]),
        node("Conv", ["r1", "w2"], ["c2"], **same),
        node("BatchNormalization", ["c2", *statistics], ["n2"]),
        node("Conv", ["x", "w3"], ["s"], strides=[2, 2], kernel_shape=[1, 1]),
        node("Add", ["n2", "s"], ["sum"]), node("Relu", ["sum"], ["r2"]),
        node("MaxPool", ["r2"], ["p"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("GlobalAveragePool", ["p"], ["g"]), node("Flatten", ["g"], ["f"]),
        node("MatMul", ["f", "dense"], ["y"]),
    ]
    check(model_of(nodes, {"x": [2, 8, 15, 15]}, {"y": 2}, weights, opset), {"x": draw(2, 8, 15, 15)})


def test_a_grouped_convolution_with_a_channel_shuffle() -> None:
    weights = weights_of(w=(12, 2, 3, 3), b=(12,)) | {
        "split": np.array([1, 2, 6, 9, 9]), "whole": np.array([1, 12, 9, 9])}
    check(model_of([
        node("Conv", ["x", "w", "b"], ["c"], group=6, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Reshape", ["c", "split"], ["s"]), node("Transpose", ["s"], ["t"], perm=[0, 2, 1, 3, 4]),
        node("Reshape", ["t", "whole"], ["y"]),
    ], {"x": [1, 12, 9, 9]}, {"y": 4}, weights), {"x": draw(1, 12, 9, 9)})


def test_a_transformer_block_of_any_length() -> None:
    """Shapes are computed from the symbolic length, as exporters of PyTorch write it."""
    weights = weights_of(
        g1=(32,), b1=(32,), q=(32, 32), k=(32, 32), v=(32, 32), o=(32, 32), up=(32, 64),
        down=(64, 32),
    ) | {
        "one": np.array([1]), "heads": np.array([4]), "width": np.array([8]),
        "flat": np.array([32]), "scale": np.array(8**-0.5, np.float32), "index": np.array(1),
        "zero": np.array([0]),
    }

    def split(name: str) -> list[Any]:
        return [
            node("MatMul", ["n", name], [f"{name}m"]),
            node("Reshape", [f"{name}m", "shape"], [f"{name}r"]),
            node("Transpose", [f"{name}r"], [f"{name}h"], perm=[0, 2, 1, 3]),
        ]

    nodes = [
        node("LayerNormalization", ["x", "g1", "b1"], ["n"]),
        node("Shape", ["x"], ["size"]), node("Gather", ["size", "index"], ["length"], axis=0),
        node("Unsqueeze", ["length", "zero"], ["length1"]),
        node("Concat", ["one", "length1", "heads", "width"], ["shape"], axis=0),
        *split("q"), *split("k"), *split("v"),
        node("Transpose", ["kh"], ["kt"], perm=[0, 1, 3, 2]),
        node("MatMul", ["qh", "kt"], ["dots"]), node("Mul", ["dots", "scale"], ["scores"]),
        node("Softmax", ["scores"], ["weights"], axis=-1), node("MatMul", ["weights", "vh"], ["a"]),
        node("Transpose", ["a"], ["at"], perm=[0, 2, 1, 3]),
        node("Concat", ["one", "length1", "flat"], ["shape3"], axis=0),
        node("Reshape", ["at", "shape3"], ["af"]), node("MatMul", ["af", "o"], ["p"]),
        node("Add", ["x", "p"], ["h"]), node("MatMul", ["h", "up"], ["u"]),
        node("Sigmoid", ["u"], ["gate"]), node("Mul", ["u", "gate"], ["silu"]),
        node("MatMul", ["silu", "down"], ["d"]), node("Add", ["h", "d"], ["y"]),
    ]
    model = model_of(nodes, {"x": [1, "length", 32]}, {"y": 3}, weights)
    check(model, *({"x": draw(1, n, 32)} for n in (1, 2, 7, 33)))


def test_functions_of_a_model_and_of_onnx_are_expanded() -> None:
    check(model_of([
        node("HardSwish", ["x"], ["a"]), node("MeanVarianceNormalization", ["a"], ["y"]),
    ], {"x": [2, 3, 4, 4]}, {"y": 4}, {}), {"x": draw(2, 3, 4, 4)})


@pytest.mark.exhaustive
def test_files_and_bytes(tmp_path: Path) -> None:
    model, feeds = perceptron(), {"x": draw(4, 20)}
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    (expected,) = exact(model, feeds)

    for source in (path, str(path), path.read_bytes(), model):
        np.testing.assert_allclose(load(source)(feeds["x"]), expected, rtol=1e-4, atol=1e-6)
    external = tmp_path / "external.onnx"
    onnx.save(model, external, save_as_external_data=True, location="weights", size_threshold=0)
    np.testing.assert_allclose(load(external)(feeds["x"]), expected, rtol=1e-4, atol=1e-6)
    (tmp_path / "weights").unlink()
    with pytest.raises(ModelError):
        load(external)


def test_given_shapes() -> None:
    model = load(perceptron(), shapes={"x": (4, 20)})

    assert model(draw(4, 20)).shape == (4, 10)
    with pytest.raises(CallError):
        model(draw(5, 20))


def outside_of_folder(folder: Path) -> None:
    model = perceptron()
    onnx.save(model, folder / "m.onnx", save_as_external_data=True, location="w", size_threshold=0)
    moved = onnx.load(folder / "m.onnx", load_external_data=False)
    for tensor in moved.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "../w"
    (folder / "inner").mkdir()
    (folder / "inner" / "m.onnx").write_bytes(moved.SerializeToString())
    load(folder / "inner" / "m.onnx")


def with_a_cycle(_: Path) -> None:
    load(model_of(
        [node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"])], {"x": [3]}, {"b": 1}, {}))


def of_the_future(_: Path) -> None:
    load(model_of([node("Relu", ["x"], ["y"])], {"x": [3]}, {"y": 1}, {}, opset=999))


@pytest.mark.parametrize("make", [
    lambda _: load(b"not a model"), lambda _: load(3),
    lambda folder: load(folder / "missing.onnx"),
    lambda _: load(perceptron().SerializeToString()[:200]), outside_of_folder, with_a_cycle,
    of_the_future,
])
def test_malformed_models_are_refused(make: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(ModelError) as error:
        make(tmp_path)
    assert error.value.kind in {"invalid-model", "model"}


@pytest.mark.exhaustive(keep=1, most=80)
@pytest.mark.parametrize("seed", range(400))
def test_mutated_files_are_loaded_or_refused(seed: int) -> None:
    random = np.random.default_rng(seed)
    data = bytearray(perceptron().SerializeToString())
    for _ in range(int(random.integers(1, 8))):
        data[int(random.integers(len(data)))] = int(random.integers(256))
    with suppress(ModelError):
        load(bytes(data))


def hostile_models() -> dict[str, onnx.ModelProto]:
    """Return models that violate shapes, attributes, sizes and nesting."""
    x = {"x": [4, 5]}

    def weight(array: Array) -> dict[str, Array]:
        return {"w": array}

    return {
        "inner sizes": model_of([node("MatMul", ["x", "w"], ["y"])], x, {"y": 2}, weight(np.zeros((4, 4), np.float32))),
        "axis": model_of([node("Softmax", ["x"], ["y"], axis=9)], x, {"y": 2}, {}),
        "permutation": model_of([node("Transpose", ["x"], ["y"], perm=[0, 0])], x, {"y": 2}, {}),
        "kernel": model_of([node("MaxPool", ["x"], ["y"], kernel_shape=[3])], x, {"y": 2}, {}),
        "shape": model_of([node("Reshape", ["x", "w"], ["y"])], x, {"y": 2}, weight(np.array([7, -1]))),
        "two unknown": model_of([node("Reshape", ["x", "w"], ["y"])], x, {"y": 2}, weight(np.array([-1, -1]))),
        "huge constant": model_of([node("ConstantOfShape", ["w"], ["y"])], x, {"y": 2}, weight(np.array([2**40, 2**20]))),
        "huge range": model_of([
            node("Range", ["a", "b", "c"], ["y"])], x, {"y": 1},
            {"a": np.array(0), "b": np.array(2**60), "c": np.array(1)}),
        "split": model_of([node("Split", ["x", "w"], ["y", "z"])], x, {"y": 2}, weight(np.array([100, -96]))),
        "einsum": model_of([node("Einsum", ["x"], ["y"], equation="ij->")], {"x": [4]}, {"y": 0}, {}),
        "reduction": model_of([node("ReduceSum", ["x", "w"], ["y"])], x, {"y": 2}, weight(np.array([5]))),
        "negative size": model_of([node("Relu", ["x"], ["y"])], {"x": [-3]}, {"y": 1}, {}),
    }


@pytest.mark.parametrize("name", sorted(hostile_models()))
def test_hostile_models_are_refused(name: str) -> None:
    with pytest.raises(ModelError) as error:
        load(hostile_models()[name])
    assert error.value.kind in {"invalid-model", "unsupported-node"}
    if name != "negative size":
        assert "node y (" in str(error.value.message)


def mutated(seed: int) -> onnx.ModelProto:
    """Return a model with wrong attributes, names, operators or types."""
    random = np.random.default_rng(seed)
    model = perceptron()
    names = [name for item in model.graph.node for name in (*item.input, *item.output)]
    kinds = [schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain]
    for _ in range(int(random.integers(1, 4))):
        item = model.graph.node[int(random.integers(len(model.graph.node)))]
        match int(random.integers(6)):
            case 0:
                item.op_type = str(random.choice(kinds))
            case 1 if item.input:
                item.input[int(random.integers(len(item.input)))] = str(random.choice(names))
            case 2:
                item.attribute.append(helper.make_attribute("axis", int(random.integers(-9, 9))))
            case 3 if item.attribute:
                item.attribute[0].i = int(random.integers(-(2**40), 2**40))
            case 4:
                tensor = model.graph.initializer[int(random.integers(len(model.graph.initializer)))]
                if tensor.dims:
                    tensor.dims[0] = int(random.integers(-2, 2**33))
            case _:
                dim = model.graph.input[0].type.tensor_type.shape.dim
                dim[int(random.integers(len(dim)))].dim_value = int(random.integers(-2, 50))
    return model


@pytest.mark.exhaustive(keep=4, most=150)
@pytest.mark.parametrize("seed", range(600))
def test_mutated_models_are_loaded_or_refused(seed: int) -> None:
    with suppress(ModelError):
        load(mutated(seed))


def test_names_of_inputs_are_checked() -> None:
    model = load(perceptron())

    with pytest.raises(CallError) as error:
        model.run({"z": draw(1, 20)})
    assert diagnostic(error.value) == Diagnostic("argument-list", inputs="x", names="z")

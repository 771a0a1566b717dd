"""Programs of `torch.export` compute the results of the module, with symbolic batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tecomp.errors import ModelError
from tests.messages import Diagnostic, diagnostic

torch = pytest.importorskip("torch")

from tecomp.torch import load  # noqa: E402
from tests.torch.networks import NETWORKS  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")


def test_batches_are_symbolic() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.GELU(), torch.nn.LayerNorm(4))
    batch = torch.export.Dim("batch")
    exported = torch.export.export(
        network.eval(), (torch.randn(3, 8),), dynamic_shapes=({0: batch},))
    model = load(exported)
    for size in (1, 3, 17):
        x = torch.randn(size, 8)
        expected = network(x).detach().numpy()
        np.testing.assert_allclose(model(x), expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(model(x.numpy()), expected, rtol=1e-4, atol=1e-5)
    assert len(model.inputs) == len(model.outputs) == 1


def test_models_compile_for_described_machines() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()).half().eval()
    x = torch.randn(64, 64).half()
    model = load(torch.export.export(network, (x,)), target="stick128")
    expected = network.float()(x.float()).detach().numpy()
    found = np.asarray(model(x), np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=1e-2)
    assert "cycles" in str(model.program.report())


def test_networks_with_buffers() -> None:
    network, (image,) = NETWORKS["residual"]()
    network = network.eval()
    model = load(torch.export.export(network, (image,)))
    np.testing.assert_allclose(
        model(image), network(image).detach().numpy(), rtol=1e-3, atol=1e-4)


def test_all_problems_are_listed() -> None:
    class Changing(torch.nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x: Any) -> Any:
            self.count.add_(1)
            return torch.linalg.inv(x) + torch.fft.fft(x).real

    with pytest.raises(ModelError) as error:
        load(torch.export.export(Changing(), (torch.rand(3, 3),)))
    problems = str(error.value.parameters["problems"])
    assert error.value.kind == "unsupported-node"
    assert all(name in problems for name in ("linalg_inv_ex", "fft", "count"))


def test_other_arguments_are_rejected() -> None:
    with pytest.raises(ModelError) as error:
        load(torch.nn.Linear(2, 2))
    assert diagnostic(error.value) == Diagnostic("model", kind_name="Linear")

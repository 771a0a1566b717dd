"""`torch.compile(backend="tecomp")` gives the results and gradients of PyTorch's eager mode."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tecomp.torch import UnsupportedOperatorWarning, backend  # noqa: E402
from tests.torch.networks import NETWORKS  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")


@pytest.fixture(autouse=True)
def reset() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    found: Callable[..., Any] = torch.compile(function, backend=backend, **options)
    return found


def assert_agree(function: Callable[..., Any], *inputs: Any) -> None:
    """Compare a function with its compiled form; no operator runs in eager mode."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", UnsupportedOperatorWarning)
        expected, found = function(*inputs), compiled(function)(*inputs)
    assert_close(found, expected)


def assert_close(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda x, y, n: (x + 2 * y - n) / 3 + x * True,
    "promotion": lambda x, y, n: (n + 1.5, n // 2, n % 3, n / 4, x + n, n == 3, x > n),
    "powers": lambda x, y, n: (x**2, x**3, x.abs() ** 0.5, 2.0**x, x.abs() ** y),
    "roundings": lambda x, y, n: (x.round(), x.floor(), x.ceil(), x.trunc(), x.sign()),
    "functions": lambda x, y, n: (
        x.exp(), x.expm1(), x.abs().log1p(), x.sin(), x.tanh(), x.sigmoid(), x.erf(), x.abs().rsqrt()),
    "activations": lambda x, y, n: (
        torch.nn.functional.gelu(x), torch.nn.functional.gelu(x, approximate="tanh"),
        torch.nn.functional.silu(x), torch.nn.functional.elu(x), torch.nn.functional.softplus(x),
        torch.nn.functional.leaky_relu(x), torch.nn.functional.hardswish(x)),
    "clamps": lambda x, y, n: (x.clamp(-0.5, 0.5), x.clamp(min=0), x.clamp_max(0.1), n.clamp(1, 2)),
    "masks": lambda x, y, n: (
        torch.where(x > 0, x, y), x.masked_fill(x > y, -1.0), x.tril(), x.triu(1), ~(x > 0)),
    "reductions": lambda x, y, n: (
        x.sum(), x.mean(1), x.amax(0, keepdim=True), x.var(1), x.std(0, unbiased=False),
        (x > 0).any(1), (x > -9).all(), n.sum(), x.argmax(1), x.max(1), x.prod(1), x.logsumexp(1)),
    "scans": lambda x, y, n: (x.cumsum(1), x.softmax(0), x.log_softmax(1)),
    "orders": lambda x, y, n: (x.topk(2, 1), x.sort(1)),
    "views": lambda x, y, n: (
        x.T, x.reshape(2, -1), x[1:, ::2], x[-1], x[:, None], x.expand(2, 4, 6), x.flip(0, 1),
        x.repeat(2, 1, 2), torch.cat([x, y], 1), torch.stack([x, y], 2), x.unfold(1, 3, 2).sum()),
    "parts": lambda x, y, n: (x.split(4, 1), x.chunk(3, 1), x.diagonal(1), x.roll(1, 1)),
    "padding": lambda x, y, n: (
        torch.nn.functional.pad(x, (1, 2)), torch.nn.functional.pad(x, (0, -1, 1, 0), value=3.0)),
    "indices": lambda x, y, n: (
        x[n[0] % 4], x[:, n[0]], x[n[0][:2], n[0][2:4]], x[[0, -1]], x.gather(1, n % 6),
        x.index_select(1, n[0])),
    "updates": lambda x, y, n: (
        torch.select_scatter(x, y[:, 0], 1, -1), torch.slice_scatter(x, y[:2], 0, 1, 3)),
    "creation": lambda x, y, n: (
        torch.zeros_like(x), torch.full((2,), 3), torch.arange(5), torch.arange(1, 9, 3),
        torch.ones(3, dtype=torch.int32), torch.tensor(2.5)),
    "products": lambda x, y, n: (x @ y.T, x[0] @ y[0], x @ y[0], x[None] @ y.T[None], torch.addmm(
        torch.ones(4, 4), x, y.T, beta=0.5, alpha=2.0)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_agree(name: str) -> None:
    x, y = torch.randn(2, 4, 6).unbind()
    assert_agree(FUNCTIONS[name], x, y, torch.randint(0, 6, (4, 6)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_dtypes_agree(dtype: str) -> None:
    x = torch.randn(3, 5, dtype=getattr(torch, dtype))
    with torch.no_grad():
        found = compiled(lambda x: (x.exp() * 0.5).sum(1))(x)
        expected = (x.exp() * 0.5).sum(1)
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found.double(), expected.double(), rtol=2e-2, atol=2e-2)


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_agree(name: str) -> None:
    network, inputs = NETWORKS[name]()
    assert_agree(network.eval(), *inputs)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("name", ["perceptron", "residual", "gpt"])
def test_training_agrees(name: str) -> None:
    network, inputs = NETWORKS[name]()
    expected = copy.deepcopy(network)
    step = compiled(network)
    for net, function in ((expected, expected), (network, step)):
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(2):
            optimizer.zero_grad()
            function(*inputs).square().mean().backward()
            optimizer.step()
    for found, exact in zip(network.parameters(), expected.parameters(), strict=True):
        assert_close(found, exact)


def test_lengths_share_a_program() -> None:
    network, _ = NETWORKS["gpt"]()
    network = network.eval()
    calls: list[Any] = []
    counts = []

    def counted(module: Any, inputs: Any) -> Any:
        calls.append(module)
        return backend(module, inputs)

    step = torch.compile(network, backend=counted, dynamic=True)
    with torch.no_grad():
        for length in (7, 3, 9, 5):
            part = torch.randint(0, 50, (2, length))
            assert_close(step(part), network(part))
            counts.append(len(calls))
    assert counts == [counts[0]] * 4


def test_unsupported_operators_run_in_eager_mode() -> None:
    def function(x: Any) -> Any:
        return torch.linalg.inv(x * 2.0 + torch.eye(3)) + 1.0

    x = torch.rand(3, 3)
    with torch.no_grad(), pytest.warns(UnsupportedOperatorWarning) as warned:
        found = compiled(function)(x)
    assert_close(found, function(x))
    assert len(warned) == 1
    assert "aten.linalg_inv_ex.default" in str(warned[0].message)


def test_changes_of_arguments_reach_the_caller() -> None:
    x, y = torch.zeros(3), torch.ones(3)

    def function(x: Any, y: Any) -> Any:
        x.add_(y)
        return x * 2

    with torch.no_grad():
        found = compiled(function)(x, y)
    assert (x.tolist(), found.tolist()) == ([1.0] * 3, [2.0] * 3)


def test_strided_inputs_and_repeated_outputs() -> None:
    x = torch.randn(4, 6).T[::2]
    with torch.no_grad():
        a, b, c = compiled(lambda x: (x + 1, x, x.reshape(-1)))(x)
    for found, expected in ((a, x + 1), (b, x), (c, x.reshape(-1))):
        assert_close(found, expected)


def test_the_backend_is_registered() -> None:
    assert "tecomp" in torch._dynamo.list_backends()

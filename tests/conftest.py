"""Shared fixtures: agreement of all compilation stages, code caching and Hypothesis profiles."""

from __future__ import annotations

import gc
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import tecomp
from tecomp import te
from tecomp.codegen import Store, object_code
from tecomp.codegen.emit import compile as code_generator
from tecomp.codegen.llvm import code_cache
from tecomp.compute import PlaceholderOp
from tecomp.driver import ScheduledKernel, memory_check
from tecomp.ir import PrimFunc, verify
from tecomp.lowering import pipeline, place_buffers
from tests import goldens
from tests.numerics import assert_close
from tests.strategies import pairwise as pairs
from tests.strategies.machine_code import MOST_BYTES, Code, remembered, ships

# The disk cache is off by default, so that tests do not reuse the code of an earlier compiler.
os.environ.setdefault("TECOMP_CACHE", "off")

# The profiles `ci` and `all` draw the same examples in every run; `all` belongs to `--all`. `long`
# is a search that is run manually:
#     pytest --hypothesis-profile=long tests/properties
for _name, _examples in (("ci", 10), ("all", 20)):
    settings.register_profile(
        _name,
        derandomize=True,
        max_examples=_examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.register_profile(
    "long",
    max_examples=5000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)

_MOST_CASES, _SAMPLED_CASES = 8, 6
"""With --all, an exhaustive test runs with up to 8 cases, of more cases with 6 evenly spaced ones."""

CODE = Code(object_code)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    parser.addoption(
        "--shipped-code", action="store_true",
        help="run all of LLVM's passes in all tests, and not only where tests are about code",
    )
    parser.addoption(
        "--all", action="store_true", dest="all_tests",
        help="run the tests marked `exhaustive` too, and 20 instead of 10 random examples",
    )
    parser.addoption(
        "--remaining", action="store_true",
        help="with --all, leave out the cases that run without it too and have no random examples",
    )
    parser.addoption(
        "--complete", action="store_true",
        help="run all cases of the tests marked `exhaustive`, also those that --all leaves out",
    )
    pluginmanager.register(goldens, "goldens")
    pluginmanager.register(pairs, "pairs")


@pytest.hookimpl(tryfirst=True)  # before pytest-timeout reads the time limit
def pytest_configure(config: pytest.Config) -> None:
    # Tests start hundreds of processes; without bytecode each would compile all modules anew.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    config.addinivalue_line(
        "markers", "numbers_alone: the code is not what users run; LLVM makes it with no effort")
    config.addinivalue_line(
        "markers",
        f"exhaustive(keep=0, most={_SAMPLED_CASES}): checks with more programs, sizes or types what "
        "faster tests check, too; without --all `keep` of its cases run, without --complete `most`")
    profile = config.getoption("--hypothesis-profile")
    settings.load_profile(profile or ("all" if config.getoption("all_tests") else "ci"))
    if profile == "long":
        config.option.timeout = 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect cases of exhaustive tests as the options demand, unless each argument names a test."""
    if config.getoption("complete") or all("::" in argument for argument in config.args):
        return
    is_all = config.getoption("all_tests")
    is_rest = is_all and config.getoption("remaining")
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("exhaustive") is not None:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    dropped: set[pytest.Item] = set()
    for group in cases.values():
        marker = group[0].get_closest_marker("exhaustive")
        assert marker is not None
        kept = evenly_spaced(marker.kwargs.get("keep", 0), len(group))
        if is_all:
            default = len(group) if len(group) <= _MOST_CASES else _SAMPLED_CASES
            most = evenly_spaced(marker.kwargs.get("most", default), len(group))
            is_random = getattr(getattr(group[0], "obj", None), "is_hypothesis_test", False)
            kept = most - kept if is_rest and not is_random else most | kept
        dropped.update(item for k, item in enumerate(group) if k not in kept)
    if dropped:
        config.hook.pytest_deselected(items=list(dropped))
        items[:] = [item for item in items if item not in dropped]


def evenly_spaced(count: int, length: int) -> set[int]:
    """Return `count` indices of a sequence; with even spaces they cover all parameters."""
    count = min(count, length)
    return {k * length // count for k in range(count)}


def pytest_collection_finish() -> None:
    """Freeze the collected tests, so that the garbage collector does not scan them repeatedly."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(tryfirst=True)  # before fixtures are set up
def pytest_runtest_setup(item: pytest.Item) -> None:
    CODE.is_shipped = item.config.getoption("--shipped-code") or ships(item)


@pytest.fixture(scope="session", autouse=True)
def _every_pass_is_verified() -> Iterator[None]:
    """Verify the IR after each pass; outside of tests only the output of the last pass is checked."""
    run = pipeline._run

    def run_verified(functions: dict[str, PrimFunc], *arguments: Any) -> None:
        run(functions, *arguments)
        pipeline.verify_each(functions)

    def placed(*arguments: Any, **options: Any) -> PrimFunc:
        func = place_buffers(*arguments, **options)
        verify(func, flat=True)
        return func

    def verified(rewrite: Callable[[PrimFunc], PrimFunc]) -> Callable[[PrimFunc], PrimFunc]:
        def run_rewrite(func: PrimFunc) -> PrimFunc:
            rewritten = rewrite(func)
            if rewritten is not func:
                verify(rewritten, flat=True)
            return rewritten

        return run_rewrite

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "_run", run_verified)
        patch.setattr(memory_check, "place_buffers", placed)
        for name in ("hoist_divisions", "legalize_vectors", "promote_accumulators"):
            patch.setattr(code_generator, name, verified(getattr(code_generator, name)))
        yield


@pytest.fixture(scope="session", autouse=True)
def _processes_share_bytecode(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Share a bytecode directory between subprocesses if Python must not write `__pycache__`."""
    with pytest.MonkeyPatch.context() as patch:
        if sys.dont_write_bytecode:
            patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
            patch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("bytecode")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _code_is_made_once(request: pytest.FixtureRequest) -> Iterator[None]:
    """Cache machine code of equal modules across test runs; `--cache-clear` removes the cache."""
    cache = getattr(request.config, "cache", None)
    if cache is not None:
        # A store creates its directory with access for the owner only.
        CODE.make = remembered(Store(cache.mkdir("machine_code") / "compiled", MOST_BYTES))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code_cache, "object_code", CODE)
        yield


@pytest.fixture
def unregistered_functions() -> Iterator[None]:
    """Remove the names of external functions that a test registers."""
    before = set(tecomp.list_global_func_names())
    yield
    for name in set(tecomp.list_global_func_names()) - before:
        tecomp.remove_global_func(name)


class Agreement:
    """Comparison of one program with NumPy: compiled, and interpreted after every pass.

    Attributes:
        kernel: Compiled program.
        args: Arguments of the program.
        values: Input and expected output values for each argument.
        rtol: Relative and absolute tolerance for floating-point results.
    """

    def __init__(
        self, kernel: ScheduledKernel, args: Sequence[Any], values: Mapping[Any, Any], rtol: float
    ) -> None:
        self.kernel = kernel
        self.args = args
        self.values = values
        self.rtol = rtol

    def check(self) -> None:
        before = None
        for name, func in self.kernel.lowered.functions.items():
            assert tecomp.parse(str(func)) == func, name
            if func == before:
                continue
            before = func
            inputs = self.arguments(packed=name != "nest")
            params = zip(func.params, self.kernel.signature, inputs, strict=True)
            tecomp.evaluate(func, [_as_param(*triple) for triple in params])
            self.compare(inputs, f"interpreted after {name}", packed=name != "nest")
        inputs = self.arguments(packed=True)
        self.kernel(*inputs)
        self.compare(inputs, "compiled", packed=True)

    def arguments(self, *, packed: bool) -> list[Any]:
        """Return new arguments: copies of the inputs, and outputs filled with the value 77."""
        inputs = []
        for arg in self.args:
            value = self.values[arg]
            if isinstance(arg, te.Tensor):
                fresh = np.full(value.shape, 77, value.dtype)
                array = fresh if _is_computed(arg) else np.array(value, order="C")
                value = self.kernel.pack(arg, array) if packed else array
            inputs.append(value)
        return inputs

    def compare(self, argument: Sequence[Any], where: str, *, packed: bool) -> None:
        for arg, array in zip(self.args, argument, strict=True):
            if not isinstance(arg, te.Tensor):
                continue
            actual, expected = self.kernel.unpack(arg, array) if packed else array, self.values[arg]
            assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
            if actual.dtype.kind in "biu":
                np.testing.assert_array_equal(actual, expected, f"{arg.name}, {where}")
                continue
            assert_close(
                actual.astype(np.float64), expected.astype(np.float64), self.rtol, self.rtol,
                err_msg=f"{arg.name}, {where}",
            )


def _is_computed(tensor: te.Tensor) -> bool:
    return not isinstance(tensor.op, PlaceholderOp)


def _as_param(param: Any, signature: Any, array: Any) -> Any:
    """Reshape an array for a parameter of a later pass, which may merge groups of axes."""
    if not isinstance(array, np.ndarray) or array.ndim == len(param.shape):
        return array
    ends = [0, *(last + 1 for last in signature.axis_separators), array.ndim]
    return array.reshape([math.prod(array.shape[low:high]) for low, high in pairwise(ends)])


@pytest.fixture
def agrees() -> Callable[..., ScheduledKernel]:
    """Build a schedule and check it against NumPy, compiled and interpreted after every pass.

    The fixture is a function that returns the kernel. Its argument `values` maps each tensor of
    `args`, input or result, to an array in the shape of the computation, and each variable to a
    number.
    """

    def run(
        schedule: te.Schedule,
        args: Sequence[Any],
        values: Mapping[Any, Any],
        rtol: float = 0.0,
        **options: Any,
    ) -> ScheduledKernel:
        kernel = tecomp.build(schedule, args, **options)
        Agreement(kernel, args, values, rtol).check()
        return kernel

    return run

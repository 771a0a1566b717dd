"""Contender processes on the runner's side: start them on their cores and query them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tests.bench.case import BenchError

ROOT = Path(__file__).parents[2]

_THREADS = (
    "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
    "NUMEXPR_MAX_THREADS", "HL_NUM_THREADS", "TVM_NUM_THREADS", "TECOMP_NUM_THREADS",
)

# Fresh pages for each result would cost more than many results. PyTorch's guide recommends another
# allocator for this reason. These settings make glibc's allocator keep freed memory, whichever
# thread freed it.
_KEEP_MEMORY = {
    "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40),
    "MALLOC_TOP_PAD_": str(2**26), "MALLOC_ARENA_MAX": "1",
}


@dataclass(frozen=True)
class Peer:
    """Library that computes the cases.

    Attributes:
        name: Name on the command line and in the table.
        module: Module in tests/bench/peers.
        package: Required package.
    """

    name: str
    module: str
    package: str

    @property
    def is_installed(self) -> bool:
        """Whether the package is installed."""
        try:
            version(self.package)
        except PackageNotFoundError:
            return False
        return True


LIMIT = Peer("limit", "limit", "llvmlite")
OURS = Peer("tecomp", "ours", "tecomp")
PEERS = (
    Peer("numpy", "numpy_blas", "numpy"),
    Peer("numexpr", "numexpr_vm", "numexpr"),
    Peer("torch", "torch_eager", "torch"),
    Peer("torch.compile", "torch_compiled", "torch"),
    Peer("jax", "jax_jit", "jax"),
    Peer("numba", "numba_jit", "numba"),
    Peer("halide", "halide_jit", "halide"),
    Peer("tvm", "tvm_jit", "apache-tvm"),
    Peer("onnxruntime", "onnx_runtime", "onnxruntime"),
)


def choose_peers(names: Sequence[str] | None) -> list[Peer]:
    """Return the peers with these names; without names, all installed peers.

    Raises:
        BenchError: If a name is unknown or its package is not installed.
    """
    if names is None:
        return [peer for peer in PEERS if peer.is_installed]
    known = {peer.name: peer for peer in PEERS}
    for name in names:
        if name not in known:
            raise BenchError(f"bench: no peer is called {name!r}; peers are {', '.join(known)}")
        if not known[name].is_installed:
            raise BenchError(
                f"bench: {name} needs the package {known[name].package}, which is not installed; "
                "run `pip install -e '.[bench]'`"
            )
    return [known[name] for name in names]


@dataclass
class Contender:
    """Process that computes cases.

    Attributes:
        peer: Library of the process.
        cores: Cores of the process, with one thread on each.
        environment: Additional environment variables.
        version: Version of the package.
        detail: Further description that the process reports.
    """

    peer: Peer
    cores: Sequence[int]
    environment: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    detail: str = ""

    def __post_init__(self) -> None:
        count = str(len(self.cores))
        environment = {
            **{name: value for name, value in os.environ.items() if name != "TECOMP_CACHE"},
            **_KEEP_MEMORY,
            **dict.fromkeys(_THREADS, count),
            "BENCH_CORES": ",".join(map(str, self.cores)),
            "PYTHONPATH": str(ROOT),
            **self.environment,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", f"tests.bench.peers.{self.peer.module}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env=environment,
            preexec_fn=lambda: os.sched_setaffinity(0, self.cores),
        )
        hello = self._answer()
        self.version, self.detail = hello.get("version", ""), hello.get("detail", "")
        self.failure = hello.get("skipped", "")

    @property
    def threads(self) -> int:
        """Number of threads, one per core."""
        return len(self.cores)

    def ask(self, **question: Any) -> dict[str, Any]:
        """Return the answer of the process, or an error entry if the process ended."""
        if self.failure:
            return {"skipped": self.failure, "failed": True}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        self.failure = f"its process ended with status {self._process.wait()}"
        return {"skipped": self.failure, "failed": True}

    def close(self) -> None:
        """Terminate the process."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait()

"""The runner's side of a contender: starts its process with the right cores, and asks it."""

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

# Fresh pages for each result would cost more than many a result; PyTorch's guide has people use
# another allocator for that. These make glibc's keep what was freed, whichever thread freed it.
_KEEP_MEMORY = {
    "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40),
    "MALLOC_TOP_PAD_": str(2**26), "MALLOC_ARENA_MAX": "1",
}


@dataclass(frozen=True)
class Peer:
    """Somebody who computes the cases.

    Attributes:
        name: as it is asked for, and in the table.
        module: in tests/bench/peers.
        package: which has to be installed.
    """

    name: str
    module: str
    package: str

    @property
    def is_installed(self) -> bool:
        """Whether its package is there."""
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
    """The peers of these names; without names, all that are installed.

    Raises:
        BenchError: there is none of a name, or it is not installed.
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
    """A process that computes cases.

    Attributes:
        peer: who.
        cores: it may run on these, with one thread on each.
        environment: what else is set there.
        version: of its package.
        detail: what else it says about itself.
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
        """One for each core."""
        return len(self.cores)

    def ask(self, **question: Any) -> dict[str, Any]:
        """What it answers; that it ended, if it did."""
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
        """End the process."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait()

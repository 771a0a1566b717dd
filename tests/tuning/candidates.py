"""Definitions whose candidates crash, hang, allocate too much memory or compute something else."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tecomp import Choices, Target, knob, te
from tecomp.codegen import Options
from tecomp.driver import BuildRequest

HOWS = ["well", "crash", "hang", "exit", "memory", "error", "wrong"]


@dataclass(frozen=True)
class Faulty:
    """Candidate that doubles a vector, except for some choices."""

    name: str = "double"
    target: Target = field(default_factory=lambda: Target.of("cpu"))
    sizes: Mapping[str, int] = field(default_factory=dict)

    def prepare(self, choices: Choices) -> None:
        """Leave everything to the process of the candidate."""

    def request(self, prepared: Any) -> BuildRequest:
        """Return a build request, or fail as the knob says."""
        how = knob("how", HOWS)
        if how == "crash":
            os.abort()
        if how == "hang":
            time.sleep(100)
        if how == "exit":
            os._exit(0)
        if how == "memory":
            bytearray(1 << 40)
        if how == "error":
            raise ValueError("no such schedule")
        A = te.placeholder((64,), name="A")
        B = te.compute((64,), lambda i: A[i] * (3.0 if how == "wrong" else 2.0), name="B")
        return BuildRequest(te.create_schedule(B), [A, B], self.name, self.target, Options())

    def key(self) -> None:
        """Return no key: nothing is recorded."""

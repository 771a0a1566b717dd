"""ONNX Runtime with all optimizations, for networks with an ONNX model."""

from __future__ import annotations

import os

import numpy as np
import onnxruntime

from tests.bench.case import Array, Case, NoFormError
from tests.bench.programs.describe import Description
from tests.bench.programs.in_onnx import model
from tests.bench.worker import Bind, Call, serve


def program(case: Case) -> Bind:
    """Run a session; constants are in its model."""
    description: Description = case.options["program"]
    if not description.constants:
        raise NoFormError("it has no form of the case here")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])

    def bind(*source: Array) -> Call:
        session = onnxruntime.InferenceSession(
            model(description, list(source)), options, providers=["CPUExecutionProvider"])
        free = {f"in{k}": x for k, x in enumerate(source) if k not in description.constants}
        return lambda: np.asarray(session.run(None, free)[0])

    return bind


if __name__ == "__main__":
    serve({"program": program}, "onnxruntime")

"""Each operation has a definition in `te` and a sharding rule, or is listed here.

The implementations register themselves for `singledispatch` when their modules are imported. An
import that is missing, or a class without an implementation, would otherwise take the default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tecomp.array.distributed.creation  # noqa: F401  registers the rules
from tecomp.array.distributed import rule
from tecomp.ptensor.parse import operation_classes
from tecomp.ptensor.te_definitions import define

# The results of these operations have shapes that depend on data, or are not arrays, or come from
# a library of linear algebra.
WITHOUT_DEFINITION = frozenset({
    "argsort", "asarray", "extract_mask", "fft", "from_dlpack", "isin", "matrices", "matrix_rank",
    "meshgrid", "nonzero", "pinv", "rank", "result_type", "scatter_add", "searchsorted", "shape", "size",
    "solve", "sort", "unique_all", "unique_counts", "unique_inverse", "unique_values",
})
# These create arrays without sharded operands.
WITHOUT_OPERANDS = frozenset({"arange", "create_like", "eye", "linspace"})


def unregistered(function: Any) -> set[str]:
    """Return the operations for which a dispatched function takes the default."""
    default: Callable[..., Any] = function.dispatch(object)
    return {
        name for name, kind in operation_classes().items() if function.dispatch(kind) is default
    }


def test_operations_have_definitions() -> None:
    assert len(operation_classes()) > 60
    assert unregistered(define) == WITHOUT_DEFINITION


def test_operations_have_sharding_rules() -> None:
    assert unregistered(rule) == WITHOUT_DEFINITION | WITHOUT_OPERANDS

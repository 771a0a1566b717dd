"""Parallel tensors: operations on whole arrays that have a device and a team."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.ptensor.devices import results_on_device
    from tecomp.ptensor.formulas.tables import is_elementwise
    from tecomp.ptensor.function import Apply, Function, Module, Parameter, verify
    from tecomp.ptensor.library_functions import compute
    from tecomp.ptensor.lowering.device_regions import verify_lowered, verify_lowered_module
    from tecomp.ptensor.lowering.lower import lower_ptensor
    from tecomp.ptensor.lowering.lowered_ir import (
        DeviceRegion,
        Dist,
        FunctionCall,
        Let,
        Literal,
        Lowered,
        LoweredModule,
        Name,
        body_lines,
    )
    from tecomp.ptensor.lowering.runtime_calls import dist_to_runtime
    from tecomp.ptensor.operation import Argument, Operation
    from tecomp.ptensor.operation_registry import operation_classes
    from tecomp.ptensor.operations.base import (
        Attribute,
        Call,
        LibraryOperation,
        RankOf,
        ResultType,
        ShapeOf,
    )
    from tecomp.ptensor.operations.creation import (
        Arange,
        AsArray,
        Create,
        CreateLike,
        ExtractTriangle,
        Eye,
        Linspace,
        MeshGrid,
    )
    from tecomp.ptensor.operations.elementwise import (
        FUNCTIONS,
        POWERS,
        Cast,
        ElementwiseBinaryOp,
        ElementwiseBinaryTest,
        ElementwiseUnaryOp,
        ElementwiseUnaryTest,
        Where,
    )
    from tecomp.ptensor.operations.library_ops import (
        Matrices,
        PseudoInverse,
        Rank,
        Solve,
        Transform,
    )
    from tecomp.ptensor.operations.linear_algebra import MatMul, MatrixTranspose, TensorDot
    from tecomp.ptensor.operations.manipulation import (
        Broadcast,
        Combine,
        ExpandDims,
        ExtractMask,
        ExtractSlice,
        Flip,
        InsertSlice,
        Nonzero,
        PermuteDims,
        Repeat,
        Reshape,
        Roll,
        Squeeze,
        Take,
        TakeAlongAxis,
        Tile,
    )
    from tecomp.ptensor.operations.reduction import (
        CountNonzero,
        Cumulative,
        Diff,
        FindIndex,
        Reduce,
        TruthTest,
    )
    from tecomp.ptensor.operations.sorting import (
        Argsort,
        IsIn,
        SearchSorted,
        Sort,
        UniqueAll,
        UniqueCounts,
        UniqueValues,
    )
    from tecomp.ptensor.parse import parse_module, parse_type
    from tecomp.ptensor.te_definitions.reduction import summed_in
    from tecomp.ptensor.types import (
        ALL,
        COMPLEX,
        FLOATING,
        FLOATS,
        REAL,
        SCALARS,
        PTensorType,
        Shape,
        ValueType,
        numpy_dtype,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

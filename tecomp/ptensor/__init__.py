"""Parallel tensors: operations on whole arrays that have a device and a team."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.ptensor.devices import results_on_device
    from tecomp.ptensor.formulas.tables import is_elementwise
    from tecomp.ptensor.function import Apply, Function, Module, Parameter, verify
    from tecomp.ptensor.library_functions import compute
    from tecomp.ptensor.lowering.device_regions import (
        dist_to_runtime,
        verify_lowered,
        verify_lowered_module,
    )
    from tecomp.ptensor.lowering.lower import lower_ptensor
    from tecomp.ptensor.lowering.lowered_ir import (
        Binding,
        DeviceRegion,
        Dist,
        FunctionCall,
        Literal,
        LoweredFunction,
        LoweredModule,
        ValueName,
        body_lines,
    )
    from tecomp.ptensor.operation import AttributeOperand, PTensorOp
    from tecomp.ptensor.operations.base import (
        Attribute,
        CallOp,
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
        CastOp,
        ElementwiseBinaryOp,
        ElementwiseBinaryTest,
        ElementwiseUnaryOp,
        ElementwiseUnaryTest,
        WhereOp,
    )
    from tecomp.ptensor.operations.library_ops import (
        FourierTransformOp,
        Matrices,
        PseudoInverse,
        Rank,
        Solve,
    )
    from tecomp.ptensor.operations.linear_algebra import MatMul, MatrixTranspose, TensorDot
    from tecomp.ptensor.operations.manipulation import (
        BroadcastOp,
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
        TileOp,
    )
    from tecomp.ptensor.operations.reduction import (
        CountNonzero,
        Cumulative,
        Diff,
        FindIndex,
        ReduceOp,
        TruthTest,
        te_accumulator_dtype,
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
    from tecomp.ptensor.parse import operation_classes, parse_module, parse_type
    from tecomp.ptensor.parse_operands import MLIR_DTYPES
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

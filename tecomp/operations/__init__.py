"""Tables of element types and element-wise functions, which all layers read.

Every row is plain data. A package of a higher layer derives its part from the rows: type rules,
functions with docstrings, intrinsics, costs. The package imports no other package of tecomp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.operations.element_types import (
        ALL,
        BOOLEAN,
        ELEMENT_TYPES,
        FLOATS,
        INTEGERS,
        PART,
        WHOLE,
        ElementType,
        element_type,
    )
    from tecomp.operations.elementwise import ELEMENTWISE, elementwise_in
    from tecomp.operations.formulas import Algebra, NumpyAlgebra
    from tecomp.operations.reductions import (
        COMBINERS,
        CUMULATIVE,
        REDUCTIONS,
        TO_WIDE,
        Reduction,
        kinds_of,
        reductions_in,
    )
    from tecomp.operations.rows import SAME, TO_BOOL, UNCHANGED, Op

__getattr__, __dir__ = lazy_names(__name__)

"""Terms of a reduction that other operations compute, too."""

from __future__ import annotations

from tecomp.compute.affine import axes_of
from tecomp.compute.axis import IterVar
from tecomp.compute.operation import ComputeOp
from tecomp.compute.reduce import Reduce
from tecomp.compute.tensor import Tensor
from tecomp.errors import DefinitionError
from tecomp.ir.language.equal import same
from tecomp.ir.language.expr import Expr, Var
from tecomp.ir.language.given import check_kind
from tecomp.ir.traversal.rewrite import substitute, walk


def computes_terms(reader: Tensor, tensor: Tensor) -> bool:
    """Whether an operation computes what another one reduces, maybe as a part of something else.

    Then `s.cache_terms` computes that once for both.

    Args:
        reader: of the one operation, for axes of the same extents.
        tensor: of the other; one that is no reduction of one value has no terms.

    Raises:
        DefinitionError: one is no tensor.

    Example:
        >>> import tecomp
        >>> from tecomp import te
        >>> A, k = te.placeholder((4, 8), name="A"), te.reduce_axis((0, 8), name="k")
        >>> C = te.compute((4,), lambda i: te.sum(te.exp(A[i, k]), axis=k), name="C")
        >>> D = te.compute((4, 8), lambda i, j: te.exp(A[i, j]) / C[i], name="D")
        >>> tecomp.computes_terms(D, C)
        True
    """
    for name, given in (("reader", reader), ("tensor", tensor)):
        check_kind(given, Tensor, f"computes_terms: the {name}", "give what te.compute makes",
                   DefinitionError)
    if not isinstance(reader.op, ComputeOp) or not isinstance(tensor.op, ComputeOp):
        return False
    reduce = tensor.op.body[0] if len(tensor.op.body) == 1 else None
    return isinstance(reduce, Reduce) and has_term(reader.op, reduce.source[0])


def has_term(op: ComputeOp, term: Expr) -> bool:
    """Whether an operation computes a term, for axes of its own."""
    return any(axes_instead(node, term) is not None for node in walk(*op.body))


def axes_instead(node: object, term: Expr) -> dict[Var, Expr] | None:
    """The axes of a value for those of a term, if the two are the same but for their axes.

    Axes come in the order of the text, which is the same for both.
    """
    if type(node) is not type(term) or not isinstance(node, Expr):
        return None
    own, others = list(axes_of(term)), list(axes_of(node))
    if len(own) != len(others) or not all(map(_has_values_of, others, own)):
        return None
    instead: dict[Var, Expr] = dict(zip(own, others, strict=True))
    return instead if same(substitute(term, instead), node) else None


def _has_values_of(axis: IterVar, other: IterVar) -> bool:
    """Whether an axis has the values that another one has."""
    return axis.dtype == other.dtype and same(axis.dom, other.dom)

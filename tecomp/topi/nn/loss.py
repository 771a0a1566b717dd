"""Losses: how far predictions are from what they should be."""

from __future__ import annotations

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.topi import tag
from tecomp.topi.extents import differ
from tecomp.topi.nn.elemwise import channels
from tecomp.topi.reduction import reduced
from tecomp.topi.validation import check_float, check_integer, integer_of, one_of, tensor_of


def nll_loss(
    predictions: te.Tensor, targets: te.Tensor, weights: te.Tensor, reduction: str,
    ignore_index: int,
) -> te.Tensor:
    """The logarithms of probabilities of what is right, negated and weighted.

    Args:
        predictions: logarithms of probabilities, shape (n, classes, ...), or (classes,).
        targets: which class is right, shape (n, ...), or ().
        weights: of the classes.
        reduction: `mean` by weight, `sum`, or `none`.
        ignore_index: a target that does not count.

    Raises:
        DefinitionError: there is no such reduction, or the shapes do not fit.
        TypeMismatchError: the targets are no integers, or the predictions no floats.

    >>> P, T = te.placeholder((4, 8), name="P"), te.placeholder((4,), "int32", name="T")
    >>> nll_loss(P, T, te.placeholder((8,), name="w"), "mean", -100).shape
    ()
    """
    where = "topi.nn.nll_loss"
    predictions = tensor_of(predictions, where, "predictions")
    check_float(predictions, where)
    check_integer(tensor_of(targets, where, "targets"), where, "targets")
    one_of(reduction, ("mean", "sum", "none"), where, "reduction")
    along = 0 if predictions.ndim == 1 else 1
    channels(predictions, along, where, weights=tensor_of(weights, where, "weights"))
    rest = (*predictions.shape[:along], *predictions.shape[along + 1 :])
    if targets.ndim != len(rest) or any(map(differ, targets.shape, rest)):
        raise DefinitionError(
            f"{where}: predictions has shape {shape_text(predictions.shape)} and targets "
            f"{shape_text(targets.shape)}; give one target for each prediction: {shape_text(rest)}",
            kind="shapes",
        )
    ignored = integer_of(ignore_index, where, "ignore_index")
    zero = te.const(0, predictions.dtype)

    def weight(*i: te.Expr) -> te.Expr:
        target = targets(*i)
        return te.if_then_else(target == ignored, zero, weights(target))

    def loss(*i: te.Expr) -> te.Expr:
        target = targets(*i)
        chosen = predictions(*i[:along], target, *i[along:])
        return te.if_then_else(target == ignored, zero, -chosen * weights(target))

    losses = te.compute(targets.shape, loss, name="nll_loss", tag=tag.INJECTIVE)
    if reduction == "none":
        return losses
    total = reduced(losses, None, False, "sum", "nll_loss")
    if reduction == "sum":
        return total
    shares = te.compute(targets.shape, weight, name="nll_weight", tag=tag.INJECTIVE)
    count = reduced(shares, None, False, "sum", "nll_weight")
    return te.compute((), lambda: total() / count(), name="nll_loss_mean", tag=tag.ELEMWISE)

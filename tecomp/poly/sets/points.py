"""Single points of sets, for messages: the first one, by the names of its coordinates."""

from __future__ import annotations

import islpy as isl

from tecomp.ir.language.expr import Var
from tecomp.poly.sets.affine import Space
from tecomp.poly.sets.context import within_share
from tecomp.poly.sets.numbers import python_int

_DIM = isl.dim_type.set
_PARAM = isl.dim_type.param


def first_point(points: isl.Set, space: Space) -> dict[Var, int]:
    """The lexicographically first point, smallest parameters first; `points` is not empty.

    Parameters are 0 or more, unless there is no such point: a number that is no extent need not
    have a least value. Where the first one takes long to find, it is another.

    >>> i = Var("i")
    >>> line = Space((i,))
    >>> first_point(line.box([(3, 4)]), line)
    {i: 3}
    """
    count = len(space.params)
    # Parameters that the set does not mention are 0.
    points = points.align_params(space.isl)
    whole = points.move_dims(_DIM, 0, _PARAM, 0, count)
    natural = whole
    for k in range(count):
        natural = natural.lower_bound_val(_DIM, k, 0)
    least = None if natural.is_empty() else within_share(natural.lexmin)
    any_of = whole if natural.is_empty() else natural
    first = (any_of if least is None else least).sample_point()
    variables = (*space.params, *space.dims)
    return {
        var: python_int(first.get_coordinate_val(_DIM, k)) for k, var in enumerate(variables)
    }

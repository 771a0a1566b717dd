"""Integer sets for domains, accesses and layouts; the only package that imports isl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.poly.accesses.access_conflicts import Use, by_owner, shared, shared_point
    from tecomp.poly.accesses.lane_access import Places
    from tecomp.poly.accesses.tiles import (
        Access,
        Tile,
        TileDigit,
        clash,
        digits_of,
        overrun,
        tile_of,
        touched_condition,
        values_at,
        view,
    )
    from tecomp.poly.loops.ast_generation import padding_loops, scan
    from tecomp.poly.loops.box_loops import box_around, ends_of
    from tecomp.poly.loops.regions import (
        Scope,
        convex_around,
        first_dims,
        fix,
        image,
        of_earlier_iterations,
        preimage,
        rest_of,
        rounded,
        united,
        where_equal,
        without_first,
        without_gaps,
    )
    from tecomp.poly.loops.tile_loops import free, full_tiles, tiles_of
    from tecomp.poly.maps.bit_matrix import greatest, invert
    from tecomp.poly.maps.brute_force import (
        LIMIT,
        count_places,
        few_enough,
        first_collision,
        is_small,
        over_box,
        unravel,
        values,
    )
    from tecomp.poly.maps.digit_solver import Solution, solve
    from tecomp.poly.maps.image_extents import bounds_of, value_range
    from tecomp.poly.maps.index_map import AXIS_SEPARATOR, IndexMap, image_box
    from tecomp.poly.maps.piecewise_linear import Cell, TooManyError, fused, linear_cells
    from tecomp.poly.sets.from_isl import ast_expr, set_to_condition, to_expr
    from tecomp.poly.sets.isl_context import (
        CONTEXT,
        Undecided,
        asked_of_sets,
        asked_once,
        isl_work,
        within_share,
    )
    from tecomp.poly.sets.isl_expressions import NotAffine, python_int
    from tecomp.poly.sets.quasi_affine_reader import Reader
    from tecomp.poly.sets.to_isl import (
        Space,
        condition,
        condition_hull,
        first_point,
        index_relation,
        products_of,
        pw_aff,
        relation_unless_identity,
    )
    from tecomp.poly.transfers.common_digits import Axis, CommonDigits, common_digits
    from tecomp.poly.transfers.contiguous_runs import find_runs
    from tecomp.poly.transfers.padding_boxes import empty_boxes
    from tecomp.poly.transfers.strided_nests import Nest, NotDigitsError, Side, fewest_nests, nests
else:
    __getattr__, __dir__ = lazy_names(__name__)

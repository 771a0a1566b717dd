"""Integer sets for domains, accesses and layouts; the only package that imports isl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.poly.accesses.access_conflicts import (
        CoreAccess,
        by_owner,
        find_shared_element,
        find_shared_point,
    )
    from tecomp.poly.accesses.common_digits import (
        CommonDigits,
        DigitAxis,
        common_digits,
        padding_boxes,
    )
    from tecomp.poly.accesses.contiguous_runs import find_runs
    from tecomp.poly.accesses.lane_access import LaneAddresses
    from tecomp.poly.accesses.strided_nests import (
        AddressFunction,
        Nest,
        NotDigitsError,
        minimal_nests,
        nests,
    )
    from tecomp.poly.accesses.tiles import (
        IterationTile,
        OperandAccess,
        TileDigit,
        clash,
        digits_of,
        missing_reduction_points,
        readable_condition,
        tile_of,
        values_at,
        view,
    )
    from tecomp.poly.loops.ast_generation import padding_loops, scan
    from tecomp.poly.loops.box_loops import bounding_box, ends_of
    from tecomp.poly.loops.regions import (
        LoopScope,
        coalesce_convex,
        convex_superset,
        equality_points,
        fill_gaps,
        first_dims,
        fix,
        image,
        of_earlier_iterations,
        preimage,
        project_out_first_dim,
        rest_of,
        round_to_blocks,
    )
    from tecomp.poly.loops.tile_loops import full_tiles, project_out_dim, tiles_of
    from tecomp.poly.maps.bit_matrix import greatest, invert
    from tecomp.poly.maps.brute_force import (
        LIMIT,
        count_places,
        evaluate_over_box,
        first_collision,
        is_enumerable,
        is_small,
        unravel,
        values,
    )
    from tecomp.poly.maps.digit_solver import Solution, solve
    from tecomp.poly.maps.image_extents import bounds_of, value_range
    from tecomp.poly.maps.index_map import AXIS_SEPARATOR, IndexMap, image_box
    from tecomp.poly.maps.piecewise_linear import Cell, TooManyError, fuse_digit_pairs, linear_cells
    from tecomp.poly.sets.from_isl import ast_expr, set_to_condition, to_expr
    from tecomp.poly.sets.isl_context import (
        CONTEXT,
        Undecided,
        cached_question,
        cached_set_question,
        isl_work,
        within_budget,
    )
    from tecomp.poly.sets.isl_expressions import NotAffine, python_int
    from tecomp.poly.sets.quasi_affine_reader import IndexReader
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
else:
    __getattr__, __dir__ = lazy_names(__name__)

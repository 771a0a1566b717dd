"""Every public callable returns a value or raises a TecompError for arbitrary arguments."""

from __future__ import annotations

import ctypes
import inspect
import tempfile
from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import (
    Core,
    GridMap,
    IndexMap,
    Layout,
    Runs,
    ShardLayout,
    StickLayout,
    Target,
    TecompError,
    TtnnLayout,
    te,
)
from tests.messages import Diagnostic, diagnostic
from tests.strategies.bad_arguments import HUGE, failures, random_failures, tried

_A = te.placeholder((8,), name="A")
_B = te.compute((8,), lambda i: _A[i] + 1.0, name="B")
_SCHEDULE = te.create_schedule(_B)
_NEST: dict[str, Any] = {
    "schedule": _SCHEDULE, "args": [_A, _B], "name": "f", "stop_after": "nest",
}
_FUNC = tecomp.lower(**_NEST)
_FOLDER = tempfile.TemporaryDirectory()
_SAVED = f"{_FOLDER.name}/program"
tecomp.compile(_B, [_A]).save(_SAVED)
_STICKS, _TILES = Target.load("stick128"), Target.load("tensix_wh")
_GRID = GridMap.mesh((2, 2), (2, 2))
_MAP = IndexMap.from_func(lambda i, j: [j // 4, i, j % 4])
_ROWS = Layout.row_major((8, 8), "float32")
_OBJECTS: dict[str, Any] = {
    "Layout": Layout.of((8, 8), "float32", lambda i, j: [j // 4, i, j % 4]),
    "StickLayout": StickLayout((8, 8), "float32"),
    "ShardLayout": ShardLayout((8, 8), "float32", grid=(2, 2), device=_GRID),
    "TtnnLayout": TtnnLayout(
        (8, 8), "float32", memory_layout="height_sharded", memory_space="l1", shard_shape=(4, 8)
    ),
    "IndexMap": _MAP,
    "GridMap": _GRID,
    "Target": _STICKS,
    "Core": Target.load("cpu").core,
    "Runs": _ROWS.runs(),
}
_SHARD: dict[str, Any] = {
    "shape": (64, 64), "dtype": "float32", "linear": None, "collapse_intervals": [(0, -1)],
    "oob_val": "undef", "grid": (1, 2), "tile": (32, 32), "memory_space": "l1",
    "element": "float32", "face": (16, 16), "device": None, "alignment_bytes": 16,
    "capacity_bytes": 1 << 20,
    "allowed_tiles": [(32, 32)],
}
_OF: dict[str, Any] = {
    "shape": (8, 8), "dtype": "float32", "mapping": _MAP, "pad_value": 0.0, "memory": "global",
    "grid_axes": (0,),
}
_BOX: dict[str, Any] = {"start": (0, 0), "extents": (4, 8)}

for _name in ("test.bad_arguments", "test.bad_arguments.gone"):
    tecomp.register_func(_name, print, override=True)

# Arguments of a valid call of each callable; for a class, the arguments of its constructor.
RIGHT: dict[str, dict[str, Any]] = {
    "Choices": {"requested": {"tile": 16}},
    "CFunction": {
        "function": ctypes.CDLL(None), "symbol": "abs", "arguments": ["int32"], "result": "int32",
    },
    "Core": {
        "count": 2, "vector_bytes": 32, "vector_registers": 16, "cache_bytes": (32768,),
        "source": "assumed", "dots": ("int8*int8",), "vector_operations": 1, "load_operations": 2,
        "line_bytes_per_cycle": 32.0, "memory_bytes_per_cycle": 16.0,
    },
    "Core.lanes": {"dtype": "float32"},
    "DmaNest": {
        "ranges": (2,), "device_strides": (1,), "host_strides": (1,), "device_offset": 0,
        "host_offset": 0,
    },
    "FixedTiledLayout": {"size": (8, 8), "stride": (8, 1), "device_layout": _ROWS},
    "GridMap": {"shape": (2, 2), "index_map": _GRID.index_map, "physical": _GRID.physical},
    "GridMap.of": {"shape": (2, 2), "mapping": lambda y, x: [y, x], "physical": (2, 2)},
    "GridMap.mesh": {"shape": (2, 4), "device": (2, 2)},
    "GridMap.for_tensor": {
        "shape": (64, 64), "device": (8, 8), "tile": (32, 32), "is_collapsed": True,
        "is_aligned": False,
    },
    "GridMap.folded": {"shape": (2, 4), "device": (4, 4)},
    "GridMap.on_device": {"shape": (1, 8), "device": (4, 4)},
    "GridMap.parse": {"text": _GRID.text()},
    "GridMap.core": {"virtual": (0, 1)},
    "GridMap.virtual": {"core": (0, 0, 1)},
    "GridMap.applied": {"layout": ShardLayout((8, 8), "float32", grid=(2, 2))},
    "IndexMap": {
        "initial_indices": _MAP.initial_indices, "final_indices": _MAP.final_indices,
        "axis_separators": (0,),
    },
    "IndexMap.from_func": {"function": lambda i, j: [j, i], "ndim": 2},
    "IndexMap.lift": {"index_map": _MAP.plain},
    "IndexMap.is_equivalent_to": {"other": _MAP, "shape": (8, 8)},
    "IndexMap.map_indices": {"indices": (0, 1)},
    "IndexMap.then": {"after": IndexMap.from_func(lambda a, b, c: [a, b, c])},
    "Layout": {
        "shape": (8, 8), "dtype": _ROWS.dtype, "index_map": _MAP, "storage": _ROWS.storage,
        "pad_value": 0.0, "memory": "global", "grid_axes": (0,),
    },
    "Layout.of": _OF,
    "Layout.row_major": {"shape": (8, 8), "dtype": "float32", "order": (1, 0)},
    "Layout.dma": {"host_strides": (8, 1), "host_offset": 0, **_BOX},
    "Layout.element": {"place": (0, 0, 0)},
    "Layout.is_equivalent_to": {"other": _ROWS},
    "Layout.offset": {"index": (0, 0)},
    "Layout.place": {"index": (0, 0)},
    "Layout.runs": {"host_strides": (8, 1), **_BOX},
    "Layout.runs_to": {"target": _ROWS, **_BOX},
    "Layout.pack": {"array": np.zeros((8, 8), "float32"), "out": None},
    "Layout.unpack": {"array": np.zeros((2, 8, 4), "float32"), "out": None},
    "Rates": {
        "read_bytes_per_second": (2e11, 3e10), "flops": {"float32": 1e11}, "scalar_flops": {},
        "source": "a manual",
    },
    "Relayout": {"src": _ROWS, "dst": _OBJECTS["Layout"]},
    "Runs.transactions": {"most": 64},
    "ShardLayout": _SHARD,
    "ShardLayout.for_target": {
        "target": _TILES, "shape": (64, 64), "dtype": "float32", "linear": None, "grid": (1, 2),
        "tiled": True, "memory_space": "l1", "element": None,
    },
    "ShardLayout.parse": {
        "text": str(ShardLayout((8, 8), "float32")), "face": None, "device": None,
        "capacity_bytes": 1 << 20, "allowed_tiles": [(32, 32)],
    },
    "ShardLayout.check_capacity": {"capacity_bytes": 1 << 20},
    "ShardLayout.core": {"index": (0, 0)},
    "ShardLayout.core_padding": {"core": (0, 0)},
    "ShardLayout.physical_core": {"index": (0, 0)},
    "ShardLayout.shard_offset": {"index": (0, 0)},
    "ShardLayout.replace": _SHARD,
    "StickLayout": {
        "size": (8, 128), "dtype": "float16", "arrangement": _OBJECTS["StickLayout"].arrangement,
        "pad_value": 0.0, "memory": "global", "pad_all_dims": True,
    },
    "StickLayout.for_target": {
        "target": _STICKS, "size": (8, 128), "dtype": "float16", "memory": "ddr",
        "pad_all_dims": True,
    },
    "StickLayout.stride_map": {"host_strides": (8, 1)},
    "StickLayout.with_size": {"size": (7, 5)},
    "Target": {field.name: getattr(_STICKS, field.name) for field in fields(Target)},
    "Target.of": {"target": "cpu"},
    "Target.load": {"name": "cpu", "core": {"count": 2}},
    "Target.overridden": {"memory": {"lx": {"capacity_bytes": 131072}}, "clock_hz": 1e9},
    "Target.memory": {"scope": "lx"},
    "TtnnLayout": {
        "shape": (64, 64), "dtype": "float32", "stride": None, "memory_layout": "height_sharded",
        "memory_space": "l1", "shard_shape": (32, 64), "grid": None, "banks": 1,
        "tile": (32, 32), "element": "float32", "face": (16, 16), "allowed_tiles": [(32, 32)],
    },
    "TtnnLayout.from_shard": {"layout": ShardLayout((2, 64, 64), "float32", grid=(2, 2))},
    "TtnnLayout.mesh_from_shard": {
        "layout": ShardLayout((2, 8, 8), "float32", collapse_intervals=[], grid=(2, 1, 1))
    },
    "TtnnLayout.core_ranges": {"device": (8, 8)},
    "accesses": {"tensor": _B},
    "apply_buffer_transforms": {"func": _FUNC},
    "blocked": {"shape": (8, 32), "dtype": "float32", "tag": "aB16b", "axes": "ab"},
    "blocked_tag": {"layout": _ROWS, "axes": "ab"},
    "build": {
        "schedule": _SCHEDULE, "args": [_A, _B], "target": "cpu", "name": "f",
        "check_bounds": False, "fast_math": False, "fp_contract": True,
    },
    "calibrate": {"target": "cpu", "again": False},
    "check_constraints": {"subject": _SCHEDULE, "target": _STICKS, "layouts": None},
    "check_target": {"name": "texture2d"},
    "column_major": {"shape": (8, 8), "dtype": "float32"},
    "compile": {
        "outputs": [_B], "inputs": [_A], "target": "cpu", "constants": {}, "name": "program",
        "layouts": {}, "hints": [], "relayouts": True,
    },
    "computes_terms": {"reader": _B, "tensor": _B},
    "cute": {"text": "(8,8):(8,1)", "dtype": "float32", "memory": "global"},
    "cute_complement": {"text": "4:2", "size": 24},
    "cute_text": {"layout": _ROWS},
    "evaluate": {"func": _FUNC, "args": [np.zeros(8, "float32"), np.zeros(8, "float32")]},
    "flatten_buffer": {"func": _FUNC},
    "get_global_func": {"name": "test.bad_arguments", "allow_missing": False},
    "hint": {
        "tensor": _B, "stick": 0, "hard": False, "cost": 1.0, "cores": None,
        "num_tiles_per_dim": None,
    },
    "intrinsics": {"target": _STICKS},
    "list_global_func_names": {},
    "list_targets": {},
    "knob": {"name": "tile", "values": [8, 16]},
    "load": {"folder": _SAVED},
    "lower": _NEST,
    "lower_all": _NEST,
    "parse": {"text": str(_FUNC)},
    "register_func": {"func_name": "test.bad_arguments", "f": print, "override": True},
    "relayout": {"src": _ROWS, "dst": _OBJECTS["Layout"]},
    "relayout_to": {"tensor": _B, "layout": Layout.row_major((8,), "float32"), "name": "moved"},
    "remove_global_func": {"name": "test.bad_arguments.gone"},
    "replay": {"text": _SCHEDULE.trace.to_json(), "outputs": _B, "intrinsics": {}},
    "restickify": {"tensor": _B, "axis": 0, "name": "moved"},
    "storage_format": {"name": "bfp8"},
    "strided": {"shape": (8, 8), "dtype": "float32", "strides": (8, 1), "memory": "global"},
    "xla": {"text": "f32[8,8]{1,0}"},
    "xla_text": {"layout": _ROWS},
    **{
        f"IndexMap.{name}": {"shape": (8, 8)}
        for name in (
            "collision", "inverse_or_none", "is_bijective", "is_injective", "map_shape",
            "inverse", "non_surjective_inverse", "on", "padding_count",
        )
    },
}
# Result types, target descriptions and plug-in records, which users do not construct.
RECORDS = {
    "Access", "Accesses", "Affine", "Format", "Hint", "MatmulUnit", "Roofline", "Runs", "VectorUnit", "Violation",
}
INNER = {"IndexMap.at", "Target.check_axis", "Target.check_buffer"}
CLASSES = (Layout, StickLayout, ShardLayout, TtnnLayout, GridMap, IndexMap, Runs, Target, Core)


def _callable(name: str) -> Any:
    """Return the function, class or bound method with a name."""
    owner, _, method = name.partition(".")
    found = getattr(tecomp, owner)
    if not method:
        return found
    is_class = isinstance(inspect.getattr_static(found, method), classmethod)
    return getattr(found if is_class else _OBJECTS[owner], method)


def _public() -> Iterator[str]:
    """Yield the names of all exported callables and of the layout methods that take arguments."""
    for name in tecomp.__all__:
        source = getattr(tecomp, name)
        if not callable(source) or name in RECORDS:
            continue
        if not (isinstance(source, type) and issubclass(source, Exception | Enum)):
            yield "StickLayout" if source is StickLayout else name
    for owner in CLASSES:
        for name, member in vars(owner).items():
            takes = isinstance(member, classmethod) or (
                inspect.isfunction(member) and len(inspect.signature(member).parameters) > 1
            )
            if takes and not name.startswith("_"):
                yield f"{owner.__name__}.{name}"


def test_every_public_callable_is_tried() -> None:
    # A search takes seconds; tests/tuning tests the arguments of `tune`.
    assert sorted(set(_public()) - INNER - {"tune"}) == sorted(RIGHT)


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("name", RIGHT)
def test_a_wrong_argument_is_a_tecomp_error(name: str) -> None:
    call, right = _callable(name), RIGHT[name]
    call(**right)

    assert failures(lambda source: call(**source), right) == []


@pytest.mark.exhaustive(keep=34)
@pytest.mark.parametrize("name", RIGHT)
def test_several_wrong_arguments_are_a_tecomp_error(name: str) -> None:
    assert random_failures(lambda source: _callable(name)(**source), RIGHT[name], 40) == []


NAMES = ("a" * 1024, "a" * 3000, "x.y", "x y", "1x", "for", "é", "日本", "a-b", "_", "A", "i", "main", "t")


@pytest.mark.exhaustive(keep=34)
@pytest.mark.parametrize("name", [*NAMES, "", "\0", "\n", '"', "\\", "%a", "\ud800", "}", "#"])
@pytest.mark.parametrize("shape", [(4,), (0,), (1, 1, 1, 1, 1, 1, 1, 1), (1 << 40,), (3, 1 << 62)])
def test_programs_with_bad_names_and_sizes(name: str, shape: tuple[int, ...]) -> None:
    """Programs with such names and sizes can be defined, lowered and built; small ones are run."""
    a = np.ones(shape, "float32") if max(shape) < 100 else None

    def run() -> None:
        X = te.placeholder(shape, name=name)
        Y = te.compute(shape, lambda *i: X[i] + 1.0, name=name)
        s = te.create_schedule(Y)
        s[Y].parallel(s[Y].fuse(*s[Y].op.axis))
        tecomp.lower(s, [X, Y], name=name if name.isidentifier() and name != "for" else "f")
        kernel = tecomp.build(s, [X, Y])
        if a is not None:
            result = np.zeros(shape, "float32")
            kernel(a, result)
            np.testing.assert_array_equal(result, a + 1)

    assert tried(run) is None


@pytest.mark.parametrize(("name", "argument", "wrong", "expected"), [
    ("GridMap", "shape", None,
     Diagnostic("invalid-type", where="grid map: the grid", values=None, many="")),
    ("GridMap", "index_map", 3,
     Diagnostic("shards", value="3")),
    ("Layout.of", "shape", (HUGE, 2),
     Diagnostic("limit-exceeded", where="layout: the shape", max_bits=128)),
    ("ShardLayout.check_capacity", "capacity_bytes", -(1 << 200),
     Diagnostic("limit-exceeded", where="shard layout: capacity_bytes", max_bits=128)),
    ("GridMap.mesh", "shape", [HUGE, -1], Diagnostic(
        "invalid-type", where="grid map: the grid", values="[<int of 16,610 bits>, -1]", many="",
    )),
    ("GridMap.mesh", "device", (2,),
     Diagnostic("invalid-type", where="grid map: the device", values=(2,), many="2 ")),
    ("GridMap.core", "virtual", 3,
     Diagnostic("invalid-type", where="grid map: the core", values=3)),
    ("GridMap.applied", "layout", _GRID.index_map,
     Diagnostic("invalid-type", where="grid map", value="lambda d0, d1: [0, d0, d1]")),
    ("GridMap", "shape", (2, 2, 1),
     Diagnostic("shards", index_map="lambda d0, d1: [0, d0, d1]", shape=[2, 2, 1])),
    ("GridMap.mesh", "shape", (2, 1 << 20),
     Diagnostic("shards", shape=[2, 1048576], max_cores=1048576)),
    ("GridMap.for_tensor", "is_aligned", "x", Diagnostic(
        "invalid-type", where="grid map: is_aligned", value="x", remedy="pass True or False",
    )),
    ("GridMap.for_tensor", "device", (2, 1 << 20),
     Diagnostic("limit-exceeded", device=[2, 1048576], max_cores=1048576)),
    ("GridMap.folded", "shape", (10**20, 1),
     Diagnostic("shards", count=100000000000000000000, rows=4, columns=4)),
    ("IndexMap.from_func", "ndim", "x", Diagnostic(
        "invalid-type", where="index map: ndim", value="x", remedy="give a number of axes",
    )),
    ("IndexMap", "final_indices", (2, -1),
     Diagnostic(
         "invalid-type", where="index map: final_indices", value=(2, -1),
         remedy="use IndexMap.from_func, which takes a function of the indices",
     )),
    ("Layout", "index_map", None,
     Diagnostic(
         "invalid-type", where="layout: the index map", value=None,
         remedy="create one with IndexMap.from_func, or use Layout.of",
     )),
    ("Layout.dma", "host_offset", 10**30,
     Diagnostic("transfer", caller="layout.dma", chosen=[8, 1], offset=10 ** 30)),
    ("StickLayout", "pad_all_dims", 3,
     Diagnostic(
         "invalid-type", where="stick layout: pad_all_dims", value=3,
         remedy="give True or False",
     )),
    ("ShardLayout.for_target", "tiled", 3, Diagnostic(
        "invalid-type", where="shard layout: tiled", value=3, remedy="give True or False",
    )),
    ("Layout", "memory", 3, Diagnostic(
        "invalid-type", where="layout: the memory", value=3,
        remedy='pass the name of a memory, such as "global"',
    )),
    ("Layout.of", "grid_axes", 3,
     Diagnostic("invalid-type", where="layout: grid_axes", values=3)),
    ("Relayout", "src", [], Diagnostic("invalid-type", where="relayout", value=[])),
    ("relayout", "src", [], Diagnostic("invalid-type", where="relayout", value=[])),
    ("Runs.transactions", "most", 1.5,
     Diagnostic(
         "invalid-type", where="runs: what a transaction moves", value=1.5,
         remedy="give 1 or more",
     )),
    ("ShardLayout", "collapse_intervals", 3,
     Diagnostic(
         "invalid-type", where="shard layout: collapse_intervals", value=3,
         remedy="pass pairs of integers, such as [(0, -1)]",
     )),
    ("Layout.pack", "array", [[1], [2, 3]],
     Diagnostic("argument-mismatch", where="pack", type="list")),
    ("ShardLayout", "device", 3,
     Diagnostic(
         "invalid-type", where="shard layout: the device", value=3,
         remedy="pass a GridMap from this grid to the cores of the machine",
     )),
    ("ShardLayout", "capacity_bytes", "x",
     Diagnostic(
         "invalid-type", where="shard layout: capacity_bytes", value="x",
         remedy="pass a number of bytes",
     )),
    ("ShardLayout", "allowed_tiles", 3,
     Diagnostic(
         "invalid-type", where="shard layout: allowed_tiles", value=3,
         remedy="pass rows and columns of each, as in [(32, 32)]",
     )),
    ("ShardLayout", "allowed_tiles", (3,),
     Diagnostic("invalid-type", where="shard layout: allowed_tiles: a tile", values=3, many="2 ")),
    ("ShardLayout.for_target", "target", None,
     Diagnostic(
         "invalid-type", where="shard layout: the target", value=None,
         remedy="load one with Target.load(name)",
     )),
    ("ShardLayout.for_target", "grid", 3,
     Diagnostic("invalid-type", where="layout: the grid", values=3, many="")),
    ("ShardLayout.for_target", "memory_space", 3,
     Diagnostic(
         "unsupported-by-target",
         problem="target tensix_wh has no memory `3`; its memories are global, dram, l1, dst",
     )),
    ("ShardLayout.parse", "text", None,
     Diagnostic(
         "invalid-type", where="shard layout: the text", value=None,
         remedy="pass the output of `str(layout)`",
     )),
    ("StickLayout.for_target", "target", "cpu",
     Diagnostic(
         "invalid-type", where="stick layout: the target", value="cpu",
         remedy="load one with Target.load(name)",
     )),
    ("StickLayout.stride_map", "host_strides", 3,
     Diagnostic("invalid-type", where="stick layout: host_strides", values=3)),
    ("TtnnLayout", "stride", 3,
     Diagnostic("invalid-type", where="ttnn layout: stride", values=3)),
    ("TtnnLayout.from_shard", "layout", None,
     Diagnostic(
         "invalid-type", where="ttnn layout: the shard layout", value=None,
         remedy="create one with ShardLayout",
     )),
    ("TtnnLayout.core_ranges", "device", 3,
     Diagnostic("invalid-type", where="ttnn layout: the device", values=3, many="2 ")),
    ("accesses", "tensor", None,
     Diagnostic(
         "invalid-type", where="accesses: the tensor", value=None,
         remedy="pass a tensor from te.compute",
     )),
    ("apply_buffer_transforms", "func", None,
     Diagnostic(
         "invalid-type", where="apply_buffer_transforms: the function", value=None,
         remedy="pass a function returned by tecomp.lower",
     )),
    ("computes_terms", "reader", 3,
     Diagnostic(
         "invalid-type", where="computes_terms: the reader", value=3,
         remedy="pass a tensor from te.compute",
     )),
    ("blocked", "tag", 3, Diagnostic(
        "invalid-type", where="blocked: the tag", value=3, remedy='write one such as "nChw8c"',
    )),
    ("blocked", "axes", 3, Diagnostic(
        "invalid-type", where="blocked: axes", value=3,
        remedy='pass one letter per axis, such as "nchw"',
    )),
    ("blocked_tag", "layout", 3,
     Diagnostic("invalid-type", where="blocked_tag", value=3)),
    ("blocked_tag", "axes", 3,
     Diagnostic(
         "invalid-type", where="blocked_tag: axes", value=3,
         remedy='pass one letter per axis, such as "nchw"',
     )),
    ("Core", "vector_bytes", "x",
     Diagnostic(
         "target", type="Core", field="vector_bytes", value="x",
         expected="a whole number of bytes, from 1 to 65536",
     )),
    ("Core", "cache_bytes", 3, Diagnostic(
        "target", type="Core", field="cache_bytes", value=3,
        expected="a list of whole numbers of bytes, at least 1",
    )),
    ("Target", "links", 3, Diagnostic(
        "target", type="Target", field="links", value=3,
        expected="what a description has under `link`",
    )),
    ("Target", "clock_hz", -1, Diagnostic(
        "target", type="Target", field="clock_hz", value=-1,
        expected="a number of hertz, above 0",
    )),
    ("build", "schedule", None,
     Diagnostic(
         "invalid-type", where="build: the schedule", value=None,
         remedy="make one with te.create_schedule",
     )),
    ("build", "fast_math", 3, Diagnostic(
        "invalid-type", where="build: a flag", value=3, remedy="pass True or False",
    )),
    ("Target.overridden", "memory", {1: 2},
     Diagnostic(
         "invalid-type", where="target: a key", value=1,
         remedy="keys of a description must be strings",
     )),
    ("check_constraints", "layouts", 3,
     Diagnostic(
         "invalid-type", where="check_constraints: layouts", value=3,
         remedy="pass one layout per tensor",
     )),
    ("cute", "text", None, Diagnostic(
        "invalid-type", where="cute: the text", value=None,
        remedy='write one such as "(8,8):(8,1)"',
    )),
    ("cute_text", "layout", 3, Diagnostic("invalid-type", where="cute_text", value=3)),
    ("evaluate", "func", None,
     Diagnostic(
         "invalid-type", where="evaluate: the function", value=None,
         remedy="pass the result of tecomp.lower",
     )),
    ("evaluate", "args", None, Diagnostic(
        "invalid-type", where="evaluate: args", value=None,
        remedy="pass a list of the arguments",
    )),
    ("flatten_buffer", "func", None,
     Diagnostic(
         "invalid-type", where="flatten_buffer: the function", value=None,
         remedy="pass a function returned by tecomp.lower",
     )),
    ("replay", "intrinsics", 3,
     Diagnostic(
         "invalid-type", where="replay: intrinsics", value=3,
         remedy="pass a dict from names to intrinsics of te.decl_tensor_intrin",
     )),
    ("xla", "text", None, Diagnostic(
        "invalid-type", where="xla: the text", value=None,
        remedy='write one such as "f32[3,5]{1,0}"',
    )),
    ("xla_text", "layout", 3, Diagnostic("invalid-type", where="xla_text", value=3)),
])
def test_messages_have_location_problem_and_remedy(
    name: str, argument: str, wrong: Any, expected: Diagnostic
) -> None:
    with pytest.raises(TecompError) as caught:
        _callable(name)(**(RIGHT[name] | {argument: wrong}))

    assert diagnostic(caught.value) == expected

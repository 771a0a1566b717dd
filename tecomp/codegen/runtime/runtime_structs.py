"""Struct layouts shared by Python and emitted code."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template

from tecomp.codegen.llvm.ir_builder import FunctionBuilder
from tecomp.errors import InternalError

OUT_OF_BOUNDS, OUT_OF_MEMORY, RAISED = 1, 2, 3
"""Failure kinds of a record."""

_BYTES = {"i32": 4, "i64": 8, "ptr": 8}
_FIELD = re.compile(r"\bfield (\w+)\.(\w+), ")


@dataclass(frozen=True, slots=True)
class StructLayout:
    """Structure with C layout.

    Attributes:
        name: Name of the LLVM type.
        fields: Name and LLVM type of each field.

    >>> span = StructLayout("Span", (("first", "i64"), ("end", "i64")))
    >>> span.definition
    '%Span = type { i64, i64 }'
    >>> span.field_index("end")
    1
    """

    name: str
    fields: tuple[tuple[str, str], ...]

    @property
    def definition(self) -> str:
        """LLVM type definition."""
        return f"%{self.name} = type {{ {', '.join(kind for _, kind in self.fields)} }}"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fields, in order."""
        return tuple([name for name, _ in self.fields])

    @property
    def bytes(self) -> int:
        """Size in bytes up to the last field; no field may be a record or an array."""
        return self.offset("")

    def offset(self, field: str) -> int:
        """Return the byte offset of a field; "" gives the end of the last field.

        Neither the field nor the fields before may be records or arrays.

        >>> StructLayout("Pair", (("short", "i32"), ("address", "ptr"))).offset("address")
        8
        """
        end = 0
        for name, kind in self.fields:
            size = _BYTES[kind]
            start = -(-end // size) * size
            if name == field:
                return start
            end = start + size
        return end

    def field_index(self, field: str) -> int:
        """Return the index of a field.

        Raises:
            InternalError: If there is no such field.
        """
        if field not in self.names:
            raise InternalError(
                "{name} has no field {field!r}; its fields are {names}",
                name=self.name, field=field, names=self.names,
            )
        return self.names.index(field)


def words(name: str, *fields: str) -> StructLayout:
    """Return a record whose fields are 64-bit integers.

    >>> words("Rule", "kind", "value").definition
    '%Rule = type { i64, i64 }'
    """
    return StructLayout(name, tuple((field, "i64") for field in fields))


def pointers(name: str, *fields: str) -> StructLayout:
    """Return a record whose fields are pointers.

    >>> pointers("Pair", "one", "other").definition
    '%Pair = type { ptr, ptr }'
    """
    return StructLayout(name, tuple((field, "ptr") for field in fields))


def expand_fields(
    text: str, records: Sequence[StructLayout], constants: Mapping[str, object]
) -> str:
    """Expand field references and constants in `text` to LLVM IR.

    Raises:
        InternalError: If a name is not declared.

    >>> span = words("Span", "first", "end")
    >>> expand_fields("%a = field Span.end, ptr %span", [span], {})
    '%a = getelementptr %Span, ptr %span, i32 0, i32 1'
    >>> expand_fields("%b = add i64 %a, $MORE", [], {"MORE": 7})
    '%b = add i64 %a, 7'
    """
    known = {record.name: record for record in records}
    try:
        lines = Template(text).substitute(constants).split("\n")
        return "\n".join(_line(line, known) for line in lines)
    except KeyError as error:
        raise InternalError(
            "runtime IR: {reason} is not declared",
            reason=error,
        ) from error


def _line(line: str, known: Mapping[str, StructLayout]) -> str:
    found = _FIELD.search(line)
    if not found:
        return line
    record = known[found[1]]
    address = f"getelementptr %{record.name}, {line[found.end() :]}"
    return f"{line[: found.start()]}{address}, i32 0, i32 {record.field_index(found[2])}"


# Threads and their memory.
VARIABLE = "TECOMP_NUM_THREADS"
"""Environment variable with the number of threads that a kernel may use."""
MAX_WORKERS = 255
MAX_PROCESSORS = 1024
CALLERS = 16
"""Concurrent callers with persistent scratch memory; others get memory for one call."""
LIMIT = 64 << 20
"""Maximum bytes of the scratch memory of a thread."""
ALIGNMENT = 128
"""Alignment in bytes of allocations and of shared data, which prevents false sharing."""
ASKED_BYTES = 64
"""Bytes kept of the environment text with the number of threads."""
_LOCK = "[64 x i8]"
_JOB = 1 << 16
"""Job word: the low 16 bits hold the number of helpers, the upper bits the job number."""

THREAD = StructLayout("Thread", (
    ("table", "ptr"), ("busy", "i64"), ("piece", "ptr"), ("capacity", "i64"), ("top", "i64"),
    ("elsewhere", "i64"), ("blocks", "i64"), ("peak", "i64"), ("quiet", "i64"),
    ("unused", "[7 x i64]"),
))
"""State of a thread inside a kernel: function table, busy flag, piece of scratch memory with its
capacity and top, bytes and blocks from the C library, peak use, number of jobs with low use."""
WORKER = StructLayout("Worker", (
    ("thread", "%Thread"), ("mutex", _LOCK), ("condition", _LOCK), ("awake", "i32"), ("id", "i32"),
    ("unused", "[120 x i8]"),
))
WORK = StructLayout("Work", (
    ("body", "ptr"), ("captured", "ptr"), ("begin", "i64"), ("extent", "i64"), ("threads", "i64"),
    ("halvings", "i64"),
))
"""Parallel loop, number of threads that run it, and number of halvings of its chunks."""
TABLE = pointers("Table", "parallel", "allocate", "allocate_rows", "release", "record")
"""Runtime functions that kernels call."""

# Argument block and failure record of a kernel.
FAILURE = words("Failure", "kind", "site", "value", "extent")
"""First failure of a kernel; all zero if none."""
BLOCK = StructLayout("Block", (("thread", "ptr"), ("failure", "%Failure")))
"""Head of an argument block; one word for each argument and for each size follows."""
RECORD_WORDS = len(FAILURE.fields)
RECORD_WORD = 1
FIRST_ARGUMENT_WORD = RECORD_WORD + RECORD_WORDS

# Plan of a fast call, against which its arguments are checked.
INTEGER, FLOAT32, FLOAT64, BOOL = range(4)
"""Kinds of scalar arguments."""
EXTENT, BINDS, EQUALS = range(3)
"""Kinds of extents and strides: constant, size bound to a word, value equal to a word."""
PLAN = StructLayout("Plan", (
    ("entry", "ptr"), ("arguments", "i64"), ("words", "i64"), ("is_parallel", "i64"),
    ("scalars", "i64"), ("arrays", "i64"), ("sizes", "i64"), ("steps", "i64"),
))
"""Head of a plan; a `Scalar` for each scalar follows, then an `Array` for each array, then a `Size`
for each size or scalar with declared bounds, then a `Step` for each operation on sizes."""
SCALAR = words("Scalar", "argument", "kind", "lowest", "highest")
ARRAY = StructLayout("Array", (
    ("argument", "i64"), ("dtype", "ptr"), ("flags", "i64"), ("axes", "i64"), ("bytes", "i64"),
    ("is_written", "i64"), ("mark", "i64"), ("has_gaps", "i64"),
))
"""Array of a plan: `dtype` of the elements, `mark` of the layout or 0 for any. One `Axis` with the
extent of each axis follows, and one with each stride if `has_gaps` is set."""
AXIS = words("Axis", "kind", "value")
SIZE = words("Size", "word", "lowest", "highest", "divisor")
"""Declared bounds of the value of a word."""
CONSTANT, ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, MINIMUM, MAXIMUM, SAME = range(9)
"""Operations of steps. Divisions round down."""
STEP = words("Step", "operation", "target", "left", "right")
"""Operation on the words `left` and `right` whose value is stored in the word `target`.

`left` of CONSTANT is the value. SAME stores nothing and requires equal words.
"""
SPAN = words("Span", "first", "end", "is_written")
"""Address range of an array."""

# Structures and objects of NumPy and Python.
FIELDS = StructLayout("Fields", (
    ("data", "ptr"), ("axes", "i32"), ("shape", "ptr"), ("strides", "ptr"), ("base", "ptr"),
    ("dtype", "ptr"), ("flags", "i32"),
))
"""Fields of a NumPy array after the object header."""
API = (
    "PyCapsule_GetPointer", "PyEval_SaveThread", "PyEval_RestoreThread",
    "PyBytes_FromStringAndSize", "PyLong_AsLongLong", "PyErr_Occurred", "PyErr_Clear",
    "PyFloat_AsDouble", "Py_IncRef",
)
"""Python C API functions that fast calls use."""
PYTHON = pointers("Python", *API, "None", "False", "True", "int", "float", "ndarray", "packed")
"""Addresses of the API functions, then of Python objects."""

CONSTANTS = {
    "MAX_WORKERS": MAX_WORKERS,
    "MAX_PROCESSORS": MAX_PROCESSORS,
    "PROCESSOR_BYTES": MAX_PROCESSORS // 8,
    "CALLERS": CALLERS,
    "LIMIT": LIMIT,
    "ALIGNMENT": ALIGNMENT,
    "ASKED_BYTES": ASKED_BYTES,
    "JOB": _JOB,
    "JOB_WORKERS": _JOB - 1,
    "FAILURE_BYTES": FAILURE.bytes,
    "BLOCK_BYTES": 8 * FIRST_ARGUMENT_WORD,
    "FIRST_ARGUMENT_WORD": FIRST_ARGUMENT_WORD,
    "INTEGER": INTEGER,
    "FLOAT32": FLOAT32,
    "FLOAT64": FLOAT64,
    "EXTENT": EXTENT,
    "BINDS": BINDS,
    "CONSTANT": CONSTANT,
    "ADD": ADD,
    "SUBTRACT": SUBTRACT,
    "MULTIPLY": MULTIPLY,
    "DIVIDE": DIVIDE,
    "REMAINDER": REMAINDER,
    "MINIMUM": MINIMUM,
    "MAXIMUM": MAXIMUM,
}
"""Constants available in runtime text."""

RECORDS = (
    THREAD, WORKER, WORK, TABLE, FAILURE, BLOCK, PLAN, SCALAR, ARRAY, AXIS, SIZE, STEP, SPAN,
    FIELDS, PYTHON,
)
"""All records."""


def runtime_code(text: str, **constants: object) -> str:
    """Expand runtime text to LLVM IR with additional constants."""
    return expand_fields(text, RECORDS, {**CONSTANTS, **constants})


def definitions() -> str:
    """Return the LLVM type definitions of all records."""
    return "\n".join(record.definition for record in RECORDS)


_RECORD = """\
define internal void @record(
  ptr %thread, ptr %record, i64 %kind, i64 %site, i64 %value, i64 %extent
) #0 {
entry:
  %pair = cmpxchg ptr %record, i64 0, i64 %kind monotonic monotonic
  %first = extractvalue { i64, i1 } %pair, 1
  br i1 %first, label %fill, label %done
fill:
  %at.site = field Failure.site, ptr %record
  store i64 %site, ptr %at.site
  %at.value = field Failure.value, ptr %record
  store i64 %value, ptr %at.value
  %at.extent = field Failure.extent, ptr %record
  store i64 %extent, ptr %at.extent
  br label %done
done:
  ret void
}
"""
_RESULTS = {
    "allocate": f"noalias align {ALIGNMENT} ptr",
    "allocate_rows": f"noalias align {ALIGNMENT} ptr",
}
# Memory effects of runtime calls. Results of `allocate` are `noalias`. `allocate_rows` has no such
# attribute, because it writes row pointers that kernels load from memory.
_EFFECTS = {
    "allocate": " memory(argmem: readwrite, inaccessiblemem: readwrite)",
    "record": " cold memory(argmem: readwrite)",
}


def record_text() -> str:
    """Return the LLVM IR of the function that records the first failure of a kernel."""
    return runtime_code(_RECORD)


def call_runtime(code: FunctionBuilder, name: str, arguments: Sequence[str], hint: str = "") -> str:
    """Call a runtime function with the thread state as first argument; return its result."""
    table = code.op("load ptr, ptr %thread, align 8, !invariant.load !0", "table")
    slot = code.op(f"getelementptr ptr, ptr {table}, i64 {TABLE.field_index(name)}")
    function = code.op(f"load ptr, ptr {slot}, align 8, !invariant.load !0")
    args = ", ".join(["ptr %thread", *arguments])
    text = f"call {_RESULTS.get(name, 'void')} {function}({args}) nounwind{_EFFECTS.get(name, '')}"
    if hint:
        return code.op(text, hint)
    code.do(text)
    return ""

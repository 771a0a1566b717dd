"""Struct layouts shared by Python and emitted code."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template

from tecomp.codegen.llvm.ir_builder import Code
from tecomp.errors import InternalError

OUT_OF_BOUNDS, OUT_OF_MEMORY, RAISED = 1, 2, 3
"""Kinds of failure in a record."""

_BYTES = {"i32": 4, "i64": 8, "ptr": 8}
_FIELD = re.compile(r"\bfield (\w+)\.(\w+), ")


@dataclass(frozen=True, slots=True)
class Record:
    """A structure, laid out as C does it.

    Attributes:
        name: of the type in LLVM IR.
        fields: each a name and a type in LLVM IR.

    >>> span = Record("Span", (("first", "i64"), ("end", "i64")))
    >>> span.definition
    '%Span = type { i64, i64 }'
    >>> span.place("end")
    1
    """

    name: str
    fields: tuple[tuple[str, str], ...]

    @property
    def definition(self) -> str:
        """The type as LLVM IR."""
        return f"%{self.name} = type {{ {', '.join(kind for _, kind in self.fields)} }}"

    @property
    def names(self) -> tuple[str, ...]:
        """The fields, in order."""
        return tuple(name for name, _ in self.fields)

    @property
    def bytes(self) -> int:
        """What it takes in memory, if no field is a record or an array."""
        return self.offset("")

    def offset(self, field: str) -> int:
        """Bytes before a field that is no record or array, like those before it; "" is the end.

        >>> Record("Pair", (("short", "i32"), ("address", "ptr"))).offset("address")
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

    def place(self, field: str) -> int:
        """The position of a field.

        Raises:
            InternalError: there is no such field.
        """
        if field not in self.names:
            raise InternalError(f"{self.name} has no field {field!r}; it has {self.names}")
        return self.names.index(field)


def words(name: str, *fields: str) -> Record:
    """A record whose fields are words of 64 bits.

    >>> words("Rule", "kind", "value").definition
    '%Rule = type { i64, i64 }'
    """
    return Record(name, tuple((field, "i64") for field in fields))


def pointers(name: str, *fields: str) -> Record:
    """A record whose fields are addresses.

    >>> pointers("Pair", "one", "other").definition
    '%Pair = type { ptr, ptr }'
    """
    return Record(name, tuple((field, "ptr") for field in fields))


def assembled(text: str, records: Sequence[Record], constants: Mapping[str, object]) -> str:
    """`text` as LLVM IR, with fields and constants in place of their names.

    Raises:
        InternalError: a name stands for nothing.

    >>> span = words("Span", "first", "end")
    >>> assembled("%a = field Span.end, ptr %span", [span], {})
    '%a = getelementptr %Span, ptr %span, i32 0, i32 1'
    >>> assembled("%b = add i64 %a, $MORE", [], {"MORE": 7})
    '%b = add i64 %a, 7'
    """
    known = {record.name: record for record in records}
    try:
        lines = Template(text).substitute(constants).split("\n")
        return "\n".join(_line(line, known) for line in lines)
    except KeyError as error:
        raise InternalError(f"text of the runtime: {error} is declared nowhere") from error


def _line(line: str, known: Mapping[str, Record]) -> str:
    found = _FIELD.search(line)
    if not found:
        return line
    record = known[found[1]]
    address = f"getelementptr %{record.name}, {line[found.end() :]}"
    return f"{line[: found.start()]}{address}, i32 0, i32 {record.place(found[2])}"


# Threads and their memory.
VARIABLE = "TECOMP_NUM_THREADS"
"""Of the environment: how many threads a kernel may use."""
MAX_WORKERS = 255
MAX_PROCESSORS = 1024
CALLERS = 16
"""Threads of the caller's that have memory which is kept; more get theirs for the call."""
LIMIT = 64 << 20
"""Bytes of a thread's memory at most."""
ALIGNMENT = 128
"""Bytes: of allocations, and of what threads share, each on cache lines of its own."""
ASKED_BYTES = 64
"""Of the text that said how many threads there are, as far as it is kept."""
_LOCK = "[64 x i8]"
_JOB = 1 << 16
"""Above the number of workers that help with a job: the number of the job."""

THREAD = Record("Thread", (
    ("table", "ptr"), ("busy", "i64"), ("piece", "ptr"), ("capacity", "i64"), ("top", "i64"),
    ("elsewhere", "i64"), ("blocks", "i64"), ("peak", "i64"), ("quiet", "i64"),
    ("unused", "[7 x i64]"),
))
"""A thread inside a kernel: the functions, whether it is in use, its piece of memory and what is
taken of it, bytes and blocks from elsewhere, the most that was used, jobs that used little."""
WORKER = Record("Worker", (
    ("thread", "%Thread"), ("mutex", _LOCK), ("condition", _LOCK), ("awake", "i32"), ("id", "i32"),
    ("unused", "[120 x i8]"),
))
WORK = Record("Work", (
    ("body", "ptr"), ("captured", "ptr"), ("begin", "i64"), ("extent", "i64"), ("threads", "i64"),
    ("halvings", "i64"),
))
"""A parallel loop, how many threads run it and how often its chunks are halved."""
TABLE = pointers("Table", "parallel", "allocate", "allocate_rows", "release", "record")
"""The functions that the code of kernels calls."""

# The arguments of a kernel, and what it says of a failure.
FAILURE = words("Failure", "kind", "site", "value", "extent")
"""The first failure of a kernel; all zero without one."""
BLOCK = Record("Block", (("thread", "ptr"), ("failure", "%Failure")))
"""How a block of arguments begins; a word for each argument follows, and one for each size."""
RECORD_WORDS = len(FAILURE.fields)
RECORD_WORD = 1
FIRST_ARGUMENT_WORD = RECORD_WORD + RECORD_WORDS

# What a plain call compares its arguments with.
INTEGER, FLOAT32, FLOAT64, BOOL = range(4)
"""Kinds of numbers."""
EXTENT, BINDS, EQUALS = range(3)
"""Kinds of extents and strides: a number, a size that is bound to a word, one that a word has."""
PLAN = Record("Plan", (
    ("entry", "ptr"), ("arguments", "i64"), ("words", "i64"), ("is_parallel", "i64"),
    ("scalars", "i64"), ("arrays", "i64"),
))
"""How a plan begins; a `Scalar` for each number follows, then an `Array` for each array."""
SCALAR = words("Scalar", "argument", "kind", "lowest", "highest")
ARRAY = Record("Array", (
    ("argument", "i64"), ("dtype", "ptr"), ("flags", "i64"), ("axes", "i64"), ("bytes", "i64"),
    ("is_written", "i64"), ("mark", "i64"), ("has_gaps", "i64"),
))
"""Its type is that of the elements, its mark that of its layout or 0 for any; an `Axis` for each
axis follows, with its extent, and where there may be gaps one for each with its stride."""
AXIS = words("Axis", "kind", "value")
SPAN = words("Span", "first", "end", "is_written")
"""The memory of an array."""

# NumPy's and Python's own.
FIELDS = Record("Fields", (
    ("data", "ptr"), ("axes", "i32"), ("shape", "ptr"), ("strides", "ptr"), ("base", "ptr"),
    ("dtype", "ptr"), ("flags", "i32"),
))
"""The fields of a NumPy array behind the head that all objects have."""
API = (
    "PyCapsule_GetPointer", "PyEval_SaveThread", "PyEval_RestoreThread",
    "PyBytes_FromStringAndSize", "PyLong_AsLongLong", "PyErr_Occurred", "PyErr_Clear",
    "PyFloat_AsDouble", "Py_IncRef",
)
"""Functions of Python's C interface that plain calls use."""
PYTHON = pointers("Python", *API, "None", "False", "True", "int", "float", "ndarray", "packed")
"""Those functions, then objects."""

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
}
"""What the text of the runtime names."""

RECORDS = (
    THREAD, WORKER, WORK, TABLE, FAILURE, BLOCK, PLAN, SCALAR, ARRAY, AXIS, SPAN, FIELDS, PYTHON,
)
"""All records."""


def runtime_code(text: str, **constants: object) -> str:
    """`text` of the runtime as LLVM IR, with these constants besides those that all share."""
    return assembled(text, RECORDS, {**CONSTANTS, **constants})


def definitions() -> str:
    """The types of all records, as LLVM IR."""
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
# What they touch besides what anybody may see. Memory is handed out to be the only one of its kind;
# but rows are written to as well, and read through pointers from memory.
_EFFECTS = {
    "allocate": " memory(argmem: readwrite, inaccessiblemem: readwrite)",
    "record": " cold memory(argmem: readwrite)",
}


def record_text() -> str:
    """What notes the first failure of a kernel, as LLVM IR."""
    return runtime_code(_RECORD)


def call_runtime(code: Code, name: str, arguments: Sequence[str], hint: str = "") -> str:
    """Call a function of the table, with the state of this thread first; gives its operand."""
    table = code.op("load ptr, ptr %thread, align 8, !invariant.load !0", "table")
    slot = code.op(f"getelementptr ptr, ptr {table}, i64 {TABLE.place(name)}")
    function = code.op(f"load ptr, ptr {slot}, align 8, !invariant.load !0")
    given = ", ".join(["ptr %thread", *arguments])
    text = f"call {_RESULTS.get(name, 'void')} {function}({given}) nounwind{_EFFECTS.get(name, '')}"
    if hint:
        return code.op(text, hint)
    code.do(text)
    return ""

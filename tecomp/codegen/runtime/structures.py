"""What the runtime and Python share: records in memory, limits and kinds, each stated once."""

from __future__ import annotations

from tecomp.codegen.runtime.records import Record, assembled, pointers, words

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

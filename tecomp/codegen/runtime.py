"""What the code of a kernel needs at run time, and how it gets at it.

Failures are recorded by a function in each module. Memory and threads belong to the process: their
functions lie in a table, whose address is the first thing in the state of the thread that runs the
code. That state is an argument of every function, so a kernel refers to no address and no symbol
but those of the C library, and its object code can be kept in a file.
"""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.codegen.emit import Code

PARALLEL, ALLOCATE, ALLOCATE_ROWS, RELEASE = range(4)
"""Places in the table."""

RECORD = """\
define internal void @tecomp.record(ptr %record, i64 %kind, i64 %site, i64 %value, i64 %extent) #2 {
entry:
  %pair = cmpxchg ptr %record, i64 0, i64 %kind monotonic monotonic
  %first = extractvalue { i64, i1 } %pair, 1
  br i1 %first, label %fill, label %done
fill:
  %at.site = getelementptr i64, ptr %record, i64 1
  store i64 %site, ptr %at.site
  %at.value = getelementptr i64, ptr %record, i64 2
  store i64 %value, ptr %at.value
  %at.extent = getelementptr i64, ptr %record, i64 3
  store i64 %extent, ptr %at.extent
  br label %done
done:
  ret void
}
attributes #2 = { nounwind noinline cold }
"""

# These touch nothing but the state of the thread and the memory that they hand out.
_FRESH = " memory(argmem: readwrite, inaccessiblemem: readwrite)"
_RESULTS = {
    PARALLEL: "void", ALLOCATE: "noalias align 128 ptr", ALLOCATE_ROWS: "noalias align 128 ptr",
    RELEASE: "void",
}


def runtime_text(functions: str) -> str:
    """What the text of some functions calls in its own module."""
    return RECORD if "@tecomp.record(" in functions else ""


def call_runtime(code: Code, place: int, arguments: Sequence[str], hint: str = "") -> str:
    """Call a function of the table, with the state of this thread first; gives its operand."""
    table = code.op("load ptr, ptr %thread, align 8, !invariant.load !0", "table")
    slot = code.op(f"getelementptr ptr, ptr {table}, i64 {place}")
    function = code.op(f"load ptr, ptr {slot}, align 8, !invariant.load !0")
    given = ", ".join(["ptr %thread", *arguments])
    # Rows are written to as well, and read through pointers from memory.
    effects = _FRESH if place == ALLOCATE else ""
    text = f"call {_RESULTS[place]} {function}({given}) nounwind{effects}"
    if hint:
        return code.op(text, hint)
    code.do(text)
    return ""

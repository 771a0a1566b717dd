"""What the code of a kernel needs at run time, and how it gets at it.

Memory and threads belong to the process. Their functions, and that which records failures, lie in a
table, whose address is the first thing in the state of the thread that runs the code. That state is
an argument of every function, so a kernel refers to no address and no symbol but those of the C
library, and its object code can be kept in a file.
"""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.codegen.emit import Code

PARALLEL, ALLOCATE, ALLOCATE_ROWS, RELEASE, RECORD = range(5)
"""Places in the table."""

RECORD_TEXT = """\
define internal void @record(
  ptr %thread, ptr %record, i64 %kind, i64 %site, i64 %value, i64 %extent
) #0 {
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
"""
"""What notes the first failure of a kernel."""

_RESULTS = {
    PARALLEL: "void", ALLOCATE: "noalias align 128 ptr", ALLOCATE_ROWS: "noalias align 128 ptr",
    RELEASE: "void", RECORD: "void",
}
# What they touch besides what anybody may see. Memory is handed out to be the only one of its kind;
# but rows are written to as well, and read through pointers from memory.
_EFFECTS = {
    ALLOCATE: " memory(argmem: readwrite, inaccessiblemem: readwrite)",
    RECORD: " cold memory(argmem: readwrite)",
}


def call_runtime(code: Code, place: int, arguments: Sequence[str], hint: str = "") -> str:
    """Call a function of the table, with the state of this thread first; gives its operand."""
    table = code.op("load ptr, ptr %thread, align 8, !invariant.load !0", "table")
    slot = code.op(f"getelementptr ptr, ptr {table}, i64 {place}")
    function = code.op(f"load ptr, ptr {slot}, align 8, !invariant.load !0")
    given = ", ".join(["ptr %thread", *arguments])
    text = f"call {_RESULTS[place]} {function}({given}) nounwind{_EFFECTS.get(place, '')}"
    if hint:
        return code.op(text, hint)
    code.do(text)
    return ""

"""What the code of a kernel needs at run time, and how it gets at it.

Memory and threads belong to the process. Their functions, and that which records failures, lie in a
table, whose address is the first thing in the state of the thread that runs the code. That state is
an argument of every function, so a kernel refers to no address and no symbol but those of the C
library, and its object code can be kept in a file.
"""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.codegen.llvm.emit import Code
from tecomp.codegen.runtime.structures import ALIGNMENT, TABLE, runtime_code

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

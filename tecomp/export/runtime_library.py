"""LLVM IR of the runtime that exported functions share: scratch memory, thread pool, CPU levels.

The definitions are `linkonce_odr`: a linker keeps one copy for all exported functions of a program.
Their names contain a digest of the text, so objects of different versions never share state.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from tecomp.codegen.llvm.jit import LlvmTarget
from tecomp.codegen.runtime.runtime_structs import (
    FIRST_ARGUMENT_WORD,
    MAX_WORKERS,
    OUT_OF_MEMORY,
    RECORD_WORD,
    VARIABLE,
    definitions,
    record_text,
    runtime_code,
)
from tecomp.codegen.runtime.scratch_allocator_ir import scratch_text
from tecomp.codegen.runtime.thread_pool_ir import has_affinity, pool_text

_SPIN_NANOSECONDS = 50_000
"""Spin time of a thread before it sleeps, in nanoseconds, as in kernels that Python calls."""

_LOCK = """\
; 0 before the first use, 1 while a thread changes the settings, 2 when calls may proceed.
@state = internal global i32 0, align $ALIGNMENT
declare i32 @sched_yield()
define internal i32 @acquire() #0 {
entry:
  br label %look
look:
  %state = load atomic i32, ptr @state acquire, align 4
  %is.busy = icmp eq i32 %state, 1
  br i1 %is.busy, label %wait, label %claim
claim:
  %pair = cmpxchg ptr @state, i32 %state, i32 1 acq_rel acquire
  %is.mine = extractvalue { i32, i1 } %pair, 1
  br i1 %is.mine, label %out, label %wait
wait:
  %yield = call i32 @sched_yield()
  br label %look
out:
  ret i32 %state
}
define internal void @prepare() #0 {
entry:
  %state = load atomic i32, ptr @state acquire, align 4
  %is.ready = icmp eq i32 %state, 2
  br i1 %is.ready, label %out, label %slow
slow:
  %before = call i32 @acquire()
  %is.new = icmp eq i32 %before, 0
  br i1 %is.new, label %first, label %done
first:
  call void @initialize()
  br label %done
done:
  store atomic i32 2, ptr @state release, align 4
  br label %out
out:
  ret void
}
"""

_SCRATCH = """\
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define internal void @initialize() #0 {
entry:
  br label %slot
slot:
  %k = phi i64 [ 0, %entry ], [ %k.next, %slot ]
  %thread = getelementptr %Thread, ptr @callers, i64 %k
  store ptr @table, ptr %thread
  %k.next = add i64 %k, 1
  %is.more = icmp ult i64 %k.next, $CALLERS
  br i1 %is.more, label %slot, label %out
out:
  ret void
}
"""

# `processor` returns the processor `steps` allowed processors after `origin`, in cyclic order.
_PROCESSORS = """\
@allowed = internal global [$PROCESSOR_BYTES x i8] zeroinitializer, align 8
@total = internal global i64 1, align 8
@origin = internal global i64 $MAX_PROCESSORS, align 8
declare i64 @llvm.ctpop.i64(i64)
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i64 @sysconf(i32)
declare i64 @syscall(i64, ...)
define internal i64 @processor(i64 %origin, i64 %steps) #0 {
entry:
  %total = load i64, ptr @total
  %is.known = icmp ult i64 %origin, $MAX_PROCESSORS
  %is.some = icmp ult i64 %steps, %total
  %is.found = and i1 %is.known, %is.some
  br i1 %is.found, label %next, label %none
next:
  %place = phi i64 [ %origin, %entry ], [ %place.next, %next ]
  %left = phi i64 [ %steps, %entry ], [ %left.next, %next ]
  %after = add i64 %place, 1
  %place.next = and i64 %after, $LAST_PROCESSOR
  %byte = lshr i64 %place.next, 3
  %at.byte = getelementptr i8, ptr @allowed, i64 %byte
  %bits = load i8, ptr %at.byte
  %amount = and i64 %place.next, 7
  %short = trunc i64 %amount to i8
  %shifted = lshr i8 %bits, %short
  %bit = and i8 %shifted, 1
  %one = zext i8 %bit to i64
  %left.next = sub i64 %left, %one
  %is.last = icmp eq i64 %left.next, 0
  br i1 %is.last, label %out, label %next
out:
  ret i64 %place.next
none:
  ret i64 $MAX_PROCESSORS
}
define internal void @inspect() #0 {
entry:
  store i64 $MAX_PROCESSORS, ptr @origin
  %status = call i32 @sched_getaffinity(i32 0, i64 $PROCESSOR_BYTES, ptr @allowed)
  %is.known = icmp eq i32 %status, 0
  br i1 %is.known, label %word, label %unknown
word:
  %k = phi i64 [ 0, %entry ], [ %k.next, %word ]
  %sum = phi i64 [ 0, %entry ], [ %sum.next, %word ]
  %at.word = getelementptr i64, ptr @allowed, i64 %k
  %bits = load i64, ptr %at.word
  %count = call i64 @llvm.ctpop.i64(i64 %bits)
  %sum.next = add i64 %sum, %count
  %k.next = add i64 %k, 1
  %is.more = icmp ult i64 %k.next, $PROCESSOR_WORDS
  br i1 %is.more, label %word, label %place
place:
  store i64 %sum.next, ptr @total
  %here = call i32 @sched_getcpu()
  %wide = zext i32 %here to i64
  %is.valid = icmp ult i64 %wide, $MAX_PROCESSORS
  %start = select i1 %is.valid, i64 %wide, i64 0
  store i64 %start, ptr @origin
  ret void
unknown:
  %online = call i64 @sysconf(i32 $ONLINE)
  %positive = call i64 @llvm.smax.i64(i64 %online, i64 1)
  store i64 %positive, ptr @total
  ret void
}
define internal i64 @pin(i64 %processor) #0 {
entry:
  %set = alloca [$PROCESSOR_BYTES x i8], align 8
  %is.some = icmp ult i64 %processor, $MAX_PROCESSORS
  br i1 %is.some, label %some, label %none
some:
  call void @llvm.memset.p0.i64(ptr %set, i8 0, i64 $PROCESSOR_BYTES, i1 false)
  %word = lshr i64 %processor, 6
  %at.word = getelementptr i64, ptr %set, i64 %word
  %place = and i64 %processor, 63
  %bit = shl i64 1, %place
  store i64 %bit, ptr %at.word
  %status = call i32 @sched_setaffinity(i32 0, i64 $PROCESSOR_BYTES, ptr %set)
  %is.pinned = icmp eq i32 %status, 0
  %result = select i1 %is.pinned, i64 %processor, i64 $MAX_PROCESSORS
  ret i64 %result
none:
  ret i64 $MAX_PROCESSORS
}
define internal i64 @thread_id() #0 {
entry:
  %id = call i64 (i64, ...) @syscall(i64 $GETTID)
  ret i64 %id
}
"""

_WITHOUT_AFFINITY = """\
@total = internal global i64 1, align 8
@origin = internal global i64 $MAX_PROCESSORS, align 8
declare i64 @sysconf(i32)
define internal i64 @processor(i64 %origin, i64 %steps) #0 {
entry:
  ret i64 $MAX_PROCESSORS
}
define internal void @inspect() #0 {
entry:
  %online = call i64 @sysconf(i32 $ONLINE)
  %positive = call i64 @llvm.smax.i64(i64 %online, i64 1)
  store i64 %positive, ptr @total
  ret void
}
define internal i64 @pin(i64 %processor) #0 {
entry:
  ret i64 $MAX_PROCESSORS
}
define internal i64 @thread_id() #0 {
entry:
  ret i64 0
}
"""

# A forked process has none of the workers: the first parallel call starts them again. Workers block
# all signals, so that the threads of the application handle them.
_THREADS = """\
@limit = internal global i64 0, align 8
@created = internal global i64 0, align 8
@watches = internal global i32 0, align 8
@variable = internal constant [$VARIABLE_BYTES x i8] c"$VARIABLE\\00"
declare ptr @getenv(ptr)
declare i64 @strtol(ptr, ptr, i32)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_atfork(ptr, ptr, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
define internal i64 @environment() #0 {
entry:
  %text = call ptr @getenv(ptr @variable)
  %is.none = icmp eq ptr %text, null
  br i1 %is.none, label %none, label %some
none:
  ret i64 0
some:
  %number = call i64 @strtol(ptr %text, ptr null, i32 10)
  %is.positive = icmp sgt i64 %number, 0
  %result = select i1 %is.positive, i64 %number, i64 0
  ret i64 %result
}
define internal ptr @worker_main(ptr %argument) #0 {
entry:
  %index = ptrtoint ptr %argument to i64
  %origin = load i64, ptr @origin
  %steps = add i64 %index, 1
  %processor = call i64 @processor(i64 %origin, i64 %steps)
  %pinned = call i64 @pin(i64 %processor)
  %id = call i64 @thread_id()
  call void @serve(i64 %index, i64 %id, i64 %pinned)
  ret ptr null
}
define internal i32 @create_worker(i64 %index) #0 {
entry:
  %handle = alloca i64, align 8
  %all = alloca [128 x i8], align 8
  %before = alloca [128 x i8], align 8
  call void @llvm.memset.p0.i64(ptr %all, i8 -1, i64 128, i1 false)
  %a = call i32 @pthread_sigmask(i32 $BLOCK, ptr %all, ptr %before)
  %argument = inttoptr i64 %index to ptr
  %status = call i32 @pthread_create(ptr %handle, ptr null, ptr @worker_main, ptr %argument)
  %b = call i32 @pthread_sigmask(i32 $SET_MASK, ptr %before, ptr null)
  %is.created = icmp eq i32 %status, 0
  br i1 %is.created, label %detach, label %out
detach:
  %thread = load i64, ptr %handle
  %c = call i32 @pthread_detach(i64 %thread)
  br label %out
out:
  ret i32 %status
}
define internal void @restart() #0 {
entry:
  store i64 0, ptr @created
  store atomic i32 0, ptr @state release, align 4
  ret void
}
define internal void @initialize() #0 {
entry:
  call void @begin()
  call void @inspect()
  %watches = load i32, ptr @watches
  %is.first = icmp eq i32 %watches, 0
  br i1 %is.first, label %watch, label %adjust
watch:
  store i32 1, ptr @watches
  %a = call i32 @pthread_atfork(ptr null, ptr null, ptr @restart)
  br label %adjust
adjust:
  call void @adjust()
  ret void
}
define internal void @adjust() #0 {
entry:
  %total = load i64, ptr @total
  %limit = load i64, ptr @limit
  %is.set = icmp ne i64 %limit, 0
  br i1 %is.set, label %known, label %default
default:
  %number = call i64 @environment()
  %has.number = icmp ne i64 %number, 0
  %usual = select i1 %has.number, i64 %number, i64 %total
  br label %known
known:
  %wanted = phi i64 [ %limit, %entry ], [ %usual, %default ]
  %count = call i64 @llvm.umin.i64(i64 %wanted, i64 $MAX_THREADS)
  %workers = sub i64 %count, 1
  br label %test
test:
  %created = load i64, ptr @created
  %is.less = icmp ult i64 %created, %workers
  br i1 %is.less, label %create, label %set
create:
  %status = call i32 @create_worker(i64 %created)
  %is.created = icmp eq i32 %status, 0
  br i1 %is.created, label %next, label %set
next:
  %created.next = add i64 %created, 1
  store i64 %created.next, ptr @created
  br label %test
set:
  %is.fitting = icmp ule i64 %count, %total
  %patience = select i1 %is.fitting, i64 $SPIN, i64 0
  %origin = load i64, ptr @origin
  call void @configure(i64 %count, i64 %created, i64 %patience, i64 %origin)
  ret void
}
define internal void @set_threads(i64 %count) #0 {
entry:
  %before = call i32 @acquire()
  store i64 %count, ptr @limit
  %is.new = icmp eq i32 %before, 0
  br i1 %is.new, label %first, label %again
first:
  call void @initialize()
  br label %done
again:
  call void @adjust()
  br label %done
done:
  store atomic i32 2, ptr @state release, align 4
  ret void
}
define internal i64 @thread_count() #0 {
entry:
  call void @prepare()
  %threads = load atomic i64, ptr @threads monotonic, align 8
  %started = load atomic i64, ptr @started monotonic, align 8
  %most = add i64 %started, 1
  %count = call i64 @llvm.smin.i64(i64 %threads, i64 %most)
  ret i64 %count
}
"""

# Feature bits of CPUID and XGETBV that the levels of the x86-64 psABI (section 3.1.1) require.
_LEVEL_BITS = {
    "V2_1C": 1 << 0 | 1 << 9 | 1 << 13 | 1 << 19 | 1 << 20 | 1 << 23,
    "V3_1C": 1 << 12 | 1 << 22 | 1 << 27 | 1 << 28 | 1 << 29,
    "V3_7B": 1 << 3 | 1 << 5 | 1 << 8,
    "V4_7B": 1 << 16 | 1 << 17 | 1 << 28 | 1 << 30 | 1 << 31,
    "V2_81C": 1 << 0,
    "V3_81C": 1 << 5,
    "V3_XCR": 0x6,
    "V4_XCR": 0xE6,
}

_LEVEL = """\
; Level of the processor, from 1 to 4; 0 before the first call.
@level = internal global i32 0, align 8
define internal { i32, i32, i32, i32 } @cpuid(i32 %leaf) #0 {
entry:
  %found = call { i32, i32, i32, i32 } asm sideeffect "cpuid", \
"={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"(i32 %leaf, i32 0)
  ret { i32, i32, i32, i32 } %found
}
define internal i32 @has_bits(i32 %word, i32 %bits) #0 {
entry:
  %common = and i32 %word, %bits
  %is.all = icmp eq i32 %common, %bits
  %result = zext i1 %is.all to i32
  ret i32 %result
}
define internal i32 @query_level() #0 {
entry:
  %zero = call { i32, i32, i32, i32 } @cpuid(i32 0)
  %last = extractvalue { i32, i32, i32, i32 } %zero, 0
  %has.seven = icmp uge i32 %last, 7
  %one = call { i32, i32, i32, i32 } @cpuid(i32 1)
  %one.c = extractvalue { i32, i32, i32, i32 } %one, 2
  %ext = call { i32, i32, i32, i32 } @cpuid(i32 -2147483647)
  %ext.c = extractvalue { i32, i32, i32, i32 } %ext, 2
  %a = call i32 @has_bits(i32 %one.c, i32 $V2_1C)
  %b = call i32 @has_bits(i32 %ext.c, i32 $V2_81C)
  %two = and i32 %a, %b
  %c = call i32 @has_bits(i32 %one.c, i32 $V3_1C)
  %d = call i32 @has_bits(i32 %ext.c, i32 $V3_81C)
  %cd = and i32 %c, %d
  %may.three = and i32 %two, %cd
  %is.three = icmp ne i32 %may.three, 0
  %is.more = and i1 %is.three, %has.seven
  br i1 %is.more, label %more, label %less
less:
  %low = add i32 1, %two
  ret i32 %low
more:
  %xcr = call { i32, i32 } asm sideeffect "xgetbv", "={ax},={dx},{cx}"(i32 0)
  %xcr.low = extractvalue { i32, i32 } %xcr, 0
  %seven = call { i32, i32, i32, i32 } @cpuid(i32 7)
  %seven.b = extractvalue { i32, i32, i32, i32 } %seven, 1
  %e = call i32 @has_bits(i32 %seven.b, i32 $V3_7B)
  %f = call i32 @has_bits(i32 %xcr.low, i32 $V3_XCR)
  %three = and i32 %e, %f
  %g = call i32 @has_bits(i32 %seven.b, i32 $V4_7B)
  %h = call i32 @has_bits(i32 %xcr.low, i32 $V4_XCR)
  %gh = and i32 %g, %h
  %four = and i32 %three, %gh
  %sum = add i32 %three, %four
  %high = add i32 2, %sum
  ret i32 %high
}
define internal i32 @cpu_level() #0 {
entry:
  %known = load atomic i32, ptr @level monotonic, align 4
  %is.new = icmp eq i32 %known, 0
  br i1 %is.new, label %query, label %out
query:
  %level = call i32 @query_level()
  store atomic i32 %level, ptr @level monotonic, align 4
  ret i32 %level
out:
  ret i32 %known
}
"""

LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")
"""Feature levels of the x86-64 psABI; the number of a level is its position plus 1."""


def baseline(triple: str) -> LlvmTarget:
    """Return the machine of the code that runs on every processor of a triple.

    >>> baseline("x86_64-unknown-linux-gnu").cpu
    'x86-64'
    """
    return LlvmTarget(triple, "x86-64" if triple.startswith("x86_64") else "generic")


def is_elf(triple: str) -> bool:
    """Return whether object files of a triple have the format ELF."""
    return "linux" in triple or triple.endswith("-elf")


@dataclass(frozen=True, slots=True)
class SharedRuntime:
    """Runtime definitions of a module.

    Attributes:
        text: LLVM IR.
        symbols: Symbol of each function and variable, by its name in the runtime text.
    """

    text: str
    symbols: dict[str, str]


def memory_runtime(triple: str, *, is_parallel: bool) -> SharedRuntime:
    """Return the scratch allocator, with the thread pool for parallel kernels."""
    is_linux = has_affinity(triple)
    constants = {
        "VARIABLE": VARIABLE,
        "VARIABLE_BYTES": len(VARIABLE) + 1,
        "LAST_PROCESSOR": 1023,
        "PROCESSOR_WORDS": 16,
        "MAX_THREADS": MAX_WORKERS + 1,
        "SPIN": _SPIN_NANOSECONDS,
        "ONLINE": 84 if is_linux else 58,  # _SC_NPROCESSORS_ONLN of Linux and of macOS
        "GETTID": 186 if triple.startswith("x86_64") else 178,  # system call numbers of Linux
        "BLOCK": 0 if is_linux else 1,
        "SET_MASK": 2 if is_linux else 3,
    }
    scratch = scratch_text(triple)
    if is_parallel:
        texts = [_PROCESSORS if is_linux else _WITHOUT_AFFINITY, _THREADS]
        parts = [pool_text(triple), scratch]
    else:
        texts, parts = [_SCRATCH], [scratch.replace("ptr @parallel,", "ptr null,")]
    code = [runtime_code(text, **constants) for text in [_LOCK, *texts]]
    return _shareable("\n".join([definitions(), *parts, record_text(), *code]), triple)


def level_runtime(triple: str) -> SharedRuntime:
    """Return the query of the CPU level, for x86-64."""
    return _shareable(runtime_code(_LEVEL, **_LEVEL_BITS), triple)


_DEFINITION = re.compile(r"^(?:define [^@\n]*)?@([\w.]+)(?: = |\()", re.MULTILINE)
_SYMBOL = re.compile(r"@([\w.]+)")
_GLOBAL = re.compile(r"^(@[\w.]+) = internal (global|constant) (.*?)(, align \d+)?$", re.MULTILINE)


def defined_names(text: str) -> tuple[str, ...]:
    r"""Return the names of the functions and variables that a module defines.

    >>> defined_names("@a = internal global i32 0\ndeclare void @b()\ndefine void @c() {")
    ('a', 'c')
    """
    return tuple(dict.fromkeys(_DEFINITION.findall(text)))


def rename_symbols(text: str, names: dict[str, str]) -> str:
    """Rename functions and variables of a module.

    >>> rename_symbols("call void @a(ptr @b)", {"b": "b.v3"})
    'call void @a(ptr @b.v3)'
    """
    return _SYMBOL.sub(lambda found: f"@{names.get(found[1], found[1])}", text)


def _shareable(text: str, triple: str) -> SharedRuntime:
    """Turn internal definitions into definitions that all objects of a program share."""
    names = defined_names(text)
    prefix = f"tecomp.{sha256(text.encode()).hexdigest()[:12]}."
    symbols = {name: prefix + name for name in names}
    group = "comdat" if is_elf(triple) else ""
    text = _GLOBAL.sub(
        lambda found: f"{found[1]} = linkonce_odr hidden {found[2]} {found[3]}"
        f"{', comdat' if group else ''}{found[4] or ''}", text)
    text = text.replace("define internal ", "define linkonce_odr hidden ")
    text = text.replace(" #0 {", f" #2 {group} {{")
    groups = "".join(f"${symbols[name]} = comdat any\n" for name in names) if group else ""
    return SharedRuntime(groups + rename_symbols(text, symbols), symbols)


_ROWS = """\
define internal i32 @{entry}.rows(ptr %arguments) #2 {{
entry:
  %thread = load ptr, ptr %arguments
{sums}
  %bytes = mul i64 %sum.{count}, 8
  %table = call ptr @{allocate}(ptr %thread, i64 %bytes)
  %is.missing = icmp eq ptr %table, null
  br i1 %is.missing, label %missing, label %fill.0
missing:
  %at.kind = getelementptr i64, ptr %arguments, i64 {record}
  store i64 {memory}, ptr %at.kind
  %at.site = getelementptr i64, ptr %arguments, i64 {site}
  store i64 {number}, ptr %at.site
  ret i32 {memory}
{fills}
fill.{count}:
  %status = call i32 @{entry}(ptr %arguments)
  call void @{release}(ptr %thread, ptr %table)
  ret i32 %status
}}
"""
_FILL = """\
fill.{k}:
  %slots.{k} = getelementptr ptr, ptr %table, i64 %sum.{k}
  %at.array.{k} = getelementptr i64, ptr %arguments, i64 {word}
  %array.{k} = load ptr, ptr %at.array.{k}
  store ptr %slots.{k}, ptr %at.array.{k}
  br label %test.{k}
test.{k}:
  %row.{k} = phi i64 [ 0, %fill.{k} ], [ %row.next.{k}, %row.{k}.body ]
  %is.left.{k} = icmp slt i64 %row.{k}, %rows.{k}
  br i1 %is.left.{k}, label %row.{k}.body, label %fill.{next}
row.{k}.body:
  %distance.{k} = mul i64 %row.{k}, %pitch.{k}
  %address.{k} = getelementptr i8, ptr %array.{k}, i64 %distance.{k}
  %slot.{k} = getelementptr ptr, ptr %slots.{k}, i64 %row.{k}
  store ptr %address.{k}, ptr %slot.{k}
  %row.next.{k} = add i64 %row.{k}, 1
  br label %test.{k}
"""
_SUM = """\
  %at.rows.{k} = getelementptr i64, ptr %arguments, i64 {word}
  %rows.{k} = load i64, ptr %at.rows.{k}
  %at.pitch.{k} = getelementptr i64, ptr %arguments, i64 {after}
  %pitch.{k} = load i64, ptr %at.pitch.{k}
  %sum.{next} = add i64 %sum.{k}, %rows.{k}
"""


def rows_text(
    entry: str, positions: Sequence[int], count: int, site: int, symbols: Mapping[str, str]
) -> str:
    """Return a function that replaces arrays by tables of their rows, and runs the code.

    Args:
        entry: Symbol of the code; the function has the same name with the suffix `.rows`.
        positions: Positions of the arrays among the arguments.
        count: Number of arguments; two words for each array follow them in the argument block.
        site: Number of the run-time check that an allocation failure records.
        symbols: Symbols of the runtime.
    """
    first = FIRST_ARGUMENT_WORD + count
    sums = ["  %sum.0 = add i64 0, 0\n"]
    fills = []
    for k, position in enumerate(positions):
        sums.append(_SUM.format(k=k, next=k + 1, word=first + 2 * k, after=first + 2 * k + 1))
        fills.append(_FILL.format(k=k, next=k + 1, word=FIRST_ARGUMENT_WORD + position))
    return _ROWS.format(
        entry=entry, sums="".join(sums), fills="".join(fills), count=len(positions),
        allocate=symbols["allocate"], release=symbols["release"], record=RECORD_WORD,
        site=RECORD_WORD + 1, memory=OUT_OF_MEMORY, number=site,
    )

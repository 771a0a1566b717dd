"""LLVM IR of the scratch allocator.

Every thread inside a kernel has its own piece of memory, which serves as a stack allocator:
allocations are released in reverse order. Allocations that do not fit come from the C library. When
the piece is next unused, it grows to the peak demand, so from the second or third call on, a kernel
finds its memory allocated and mapped.

A piece is at most 64 MiB; larger buffers always come from the C library. A piece of which less than
a quarter was used in 256 consecutive jobs is freed.
"""

from __future__ import annotations

from tecomp.codegen.runtime.runtime_structs import ALIGNMENT, TABLE, runtime_code

_CONSTANTS = {
    "ROUND_UP": ALIGNMENT - 1,
    "QUIET": 256,
    # Allocations from this size on are aligned to large pages and request large pages.
    "LARGE": 4 << 20,
    "LARGE_PAGE": 2 << 20,
    "THREAD_BYTES": 128,
}

_STATE = """\
@callers = internal global [$CALLERS x %Thread] zeroinitializer, align $ALIGNMENT
@table = internal global %Table { $TABLE }

declare i64 @llvm.smax.i64(i64, i64)
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
"""

_MEMORY = """\
define internal ptr @memory(i64 %bytes) #0 {
entry:
  %place = alloca ptr
  store ptr null, ptr %place
  %is.large = icmp uge i64 %bytes, $LARGE
  %alignment = select i1 %is.large, i64 $LARGE_PAGE, i64 $ALIGNMENT
  %status = call i32 @posix_memalign(ptr %place, i64 %alignment, i64 %bytes)
  %is.failure = icmp ne i32 %status, 0
  br i1 %is.failure, label %none, label %some
none:
  ret ptr null
some:
  %memory = load ptr, ptr %place
  br i1 %is.large, label %large, label %done
large:
  $ADVISE
  br label %done
done:
  ret ptr %memory
}
"""

_ALLOCATE = """\
define internal ptr @allocate(ptr %thread, i64 %bytes) #0 {
entry:
  %at.piece = field Thread.piece, ptr %thread
  %at.capacity = field Thread.capacity, ptr %thread
  %at.top = field Thread.top, ptr %thread
  %at.elsewhere = field Thread.elsewhere, ptr %thread
  %at.blocks = field Thread.blocks, ptr %thread
  %at.peak = field Thread.peak, ptr %thread
  %positive = call i64 @llvm.smax.i64(i64 %bytes, i64 1)
  %is.absurd = icmp ugt i64 %positive, 4611686018427387904
  br i1 %is.absurd, label %none, label %round
round:
  %more = add i64 %positive, $ROUND_UP
  %size = and i64 %more, -$ALIGNMENT
  %top = load i64, ptr %at.top
  %capacity = load i64, ptr %at.capacity
  %elsewhere = load i64, ptr %at.elsewhere
  %blocks = load i64, ptr %at.blocks
  %top.next = add i64 %top, %size
  %used = add i64 %top.next, %elsewhere
  %peak = load i64, ptr %at.peak
  %peak.next = call i64 @llvm.smax.i64(i64 %peak, i64 %used)
  %wanted = call i64 @llvm.umin.i64(i64 %peak.next, i64 $LIMIT)
  %is.short = icmp ugt i64 %wanted, %capacity
  %in.use = or i64 %top, %blocks
  %is.free = icmp eq i64 %in.use, 0
  %is.small = icmp ule i64 %size, $LIMIT
  %may.grow = and i1 %is.free, %is.small
  %grows = and i1 %may.grow, %is.short
  br i1 %grows, label %grow, label %keep
keep:
  %fits = icmp ule i64 %top.next, %capacity
  br i1 %fits, label %inside, label %outside
inside:
  %piece = load ptr, ptr %at.piece
  %address = getelementptr i8, ptr %piece, i64 %top
  store i64 %top.next, ptr %at.top
  store i64 %peak.next, ptr %at.peak
  ret ptr %address
grow:
  %old = load ptr, ptr %at.piece
  call void @free(ptr %old)
  %grown = call ptr @memory(i64 %wanted)
  %is.missing = icmp eq ptr %grown, null
  %capacity.next = select i1 %is.missing, i64 0, i64 %wanted
  store ptr %grown, ptr %at.piece
  store i64 %capacity.next, ptr %at.capacity
  br i1 %is.missing, label %outside, label %first
first:
  store i64 %size, ptr %at.top
  store i64 %peak.next, ptr %at.peak
  ret ptr %grown
outside:
  %block = call ptr @memory(i64 %size)
  %is.none = icmp eq ptr %block, null
  br i1 %is.none, label %none, label %count
count:
  %elsewhere.next = add i64 %elsewhere, %size
  %blocks.next = add i64 %blocks, 1
  store i64 %elsewhere.next, ptr %at.elsewhere
  store i64 %blocks.next, ptr %at.blocks
  store i64 %peak.next, ptr %at.peak
  ret ptr %block
none:
  ret ptr null
}
define internal void @release(ptr %thread, ptr %address) #0 {
entry:
  %at.piece = field Thread.piece, ptr %thread
  %at.capacity = field Thread.capacity, ptr %thread
  %at.top = field Thread.top, ptr %thread
  %at.elsewhere = field Thread.elsewhere, ptr %thread
  %at.blocks = field Thread.blocks, ptr %thread
  %piece = load ptr, ptr %at.piece
  %capacity = load i64, ptr %at.capacity
  %low = ptrtoint ptr %piece to i64
  %place = ptrtoint ptr %address to i64
  %offset = sub i64 %place, %low
  %is.inside = icmp ult i64 %offset, %capacity
  br i1 %is.inside, label %inside, label %outside
inside:
  store i64 %offset, ptr %at.top
  ret void
outside:
  call void @free(ptr %address)
  %blocks = load i64, ptr %at.blocks
  %left = sub i64 %blocks, 1
  store i64 %left, ptr %at.blocks
  %is.last = icmp eq i64 %left, 0
  br i1 %is.last, label %none, label %out
none:
  store i64 0, ptr %at.elsewhere
  br label %out
out:
  ret void
}
"""

# A row table holds the row addresses, followed by the rows, each aligned.
_ROWS = """\
define internal ptr @allocate_rows(ptr %thread, i64 %rows, i64 %row.bytes) #0 {
entry:
  %count = call i64 @llvm.smax.i64(i64 %rows, i64 0)
  %pointers = mul i64 %count, 8
  %more = add i64 %pointers, $ROUND_UP
  %table.bytes = and i64 %more, -$ALIGNMENT
  %positive = call i64 @llvm.smax.i64(i64 %row.bytes, i64 0)
  %more.bytes = add i64 %positive, $ROUND_UP
  %step = and i64 %more.bytes, -$ALIGNMENT
  %data.bytes = mul i64 %count, %step
  %bytes = add i64 %table.bytes, %data.bytes
  %table = call ptr @allocate(ptr %thread, i64 %bytes)
  %none = icmp eq ptr %table, null
  %empty = icmp eq i64 %count, 0
  %stop = or i1 %none, %empty
  br i1 %stop, label %done, label %fill
fill:
  %row = phi i64 [ 0, %entry ], [ %next, %fill ]
  %offset.data = mul i64 %row, %step
  %offset = add i64 %table.bytes, %offset.data
  %address = getelementptr i8, ptr %table, i64 %offset
  %slot = getelementptr ptr, ptr %table, i64 %row
  store ptr %address, ptr %slot
  %next = add i64 %row, 1
  %more.rows = icmp slt i64 %next, %count
  br i1 %more.rows, label %fill, label %done
done:
  ret ptr %table
}
"""

# `settle` ends a job. `abandon` drops the memory that another thread was using at a fork, because
# its state is unknown. `run` calls a kernel with the persistent memory of a free caller slot, or
# with temporary memory if all slots are busy.
_JOBS = """\
define internal void @settle(ptr %thread) #0 {
entry:
  %at.peak = field Thread.peak, ptr %thread
  %peak = load i64, ptr %at.peak
  %is.used = icmp ne i64 %peak, 0
  br i1 %is.used, label %judge, label %out
judge:
  %at.capacity = field Thread.capacity, ptr %thread
  %at.quiet = field Thread.quiet, ptr %thread
  %capacity = load i64, ptr %at.capacity
  %quarter = lshr i64 %capacity, 2
  %is.little = icmp ult i64 %peak, %quarter
  br i1 %is.little, label %quiet, label %keep
quiet:
  %count = load i64, ptr %at.quiet
  %count.next = add i64 %count, 1
  %is.enough = icmp uge i64 %count.next, $QUIET
  br i1 %is.enough, label %drop, label %note
note:
  store i64 %count.next, ptr %at.quiet
  store i64 0, ptr %at.peak
  br label %out
drop:
  %at.piece = field Thread.piece, ptr %thread
  %piece = load ptr, ptr %at.piece
  call void @free(ptr %piece)
  store ptr null, ptr %at.piece
  store i64 0, ptr %at.capacity
  store i64 0, ptr %at.quiet
  br label %out
keep:
  store i64 0, ptr %at.quiet
  ; What was taken from elsewhere is what the piece grows to, if it may.
  %is.over = icmp ugt i64 %peak, %capacity
  %is.limited = icmp uge i64 %capacity, $LIMIT
  %is.final = xor i1 %is.over, true
  %is.settled = or i1 %is.limited, %is.final
  br i1 %is.settled, label %clear, label %out
clear:
  store i64 0, ptr %at.peak
  br label %out
out:
  ret void
}
define internal void @abandon(ptr %thread) #0 {
entry:
  %at.busy = field Thread.busy, ptr %thread
  %at.piece = field Thread.piece, ptr %thread
  %at.capacity = field Thread.capacity, ptr %thread
  %at.top = field Thread.top, ptr %thread
  %at.elsewhere = field Thread.elsewhere, ptr %thread
  %at.blocks = field Thread.blocks, ptr %thread
  %busy = load i64, ptr %at.busy
  %is.free = icmp eq i64 %busy, 0
  br i1 %is.free, label %out, label %forget
forget:
  store ptr null, ptr %at.piece
  store i64 0, ptr %at.capacity
  store i64 0, ptr %at.top
  store i64 0, ptr %at.elsewhere
  store i64 0, ptr %at.blocks
  store i64 0, ptr %at.busy
  br label %out
out:
  ret void
}
define internal i32 @run(ptr %entry.point, ptr %arguments) #0 {
entry:
  %guest = alloca %Thread, align $ALIGNMENT
  br label %try
try:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %slot = getelementptr %Thread, ptr @callers, i64 %k
  %at.busy = field Thread.busy, ptr %slot
  %pair = cmpxchg ptr %at.busy, i64 0, i64 1 acquire monotonic
  %is.mine = extractvalue { i64, i1 } %pair, 1
  br i1 %is.mine, label %inside, label %next
next:
  %k.next = add i64 %k, 1
  %is.more = icmp ult i64 %k.next, $CALLERS
  br i1 %is.more, label %try, label %outside
inside:
  store ptr %slot, ptr %arguments
  %status = call i32 %entry.point(ptr %arguments)
  call void @settle(ptr %slot)
  store atomic i64 0, ptr %at.busy release, align 8
  ret i32 %status
outside:
  call void @llvm.memset.p0.i64(ptr %guest, i8 0, i64 $THREAD_BYTES, i1 false)
  store ptr @table, ptr %guest
  store ptr %guest, ptr %arguments
  %status.guest = call i32 %entry.point(ptr %arguments)
  %at.piece = field Thread.piece, ptr %guest
  %piece = load ptr, ptr %at.piece
  call void @free(ptr %piece)
  ret i32 %status.guest
}
"""

_ADVISE = """\
declare i32 @madvise(ptr, i64, i32)
define internal void @advise(ptr %memory, i64 %bytes) #0 {
entry:
  %status = call i32 @madvise(ptr %memory, i64 %bytes, i32 14)
  ret void
}
"""


def scratch_text(triple: str) -> str:
    """Return the LLVM IR of the scratch allocator for a target triple."""
    is_linux = "linux" in triple
    advise = "call void @advise(ptr %memory, i64 %bytes)" if is_linux else ""
    text = "\n".join([_STATE, _MEMORY, _ALLOCATE, _ROWS, _JOBS, *[_ADVISE] * is_linux])
    table = ", ".join(f"ptr @{name}" for name in TABLE.names)
    return runtime_code(text, TABLE=table, ADVISE=advise, **_CONSTANTS)

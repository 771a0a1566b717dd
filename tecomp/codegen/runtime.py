"""What compiled code calls at run time, as LLVM IR: memory, failures and threads.

The functions are part of each module that uses them, so a kernel needs nothing but the C library.
`@tecomp.parallel` is the only place that knows how threads come to be.
"""

from __future__ import annotations

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

# Sizes are clamped so that nothing is asked for where an extent is 0 or negative. `#3` keeps
# these out of line: a table of rows is then written before the only pointer to it exists.
ALLOCATE = """\
define internal noalias ptr @tecomp.allocate(i64 %bytes) #3 {
entry:
  %place = alloca ptr
  store ptr null, ptr %place
  %size = call i64 @llvm.smax.i64(i64 %bytes, i64 64)
  %status = call i32 @posix_memalign(ptr %place, i64 64, i64 %size)
  %failed = icmp ne i32 %status, 0
  %memory = load ptr, ptr %place
  %result = select i1 %failed, ptr null, ptr %memory
  ret ptr %result
}
define internal noalias ptr @tecomp.allocate.rows(i64 %rows, i64 %row.bytes) #3 {
entry:
  %count = call i64 @llvm.smax.i64(i64 %rows, i64 0)
  %pointers = mul i64 %count, 8
  %more = add i64 %pointers, 63
  %table.bytes = and i64 %more, -64
  %positive = call i64 @llvm.smax.i64(i64 %row.bytes, i64 0)
  %more.bytes = add i64 %positive, 63
  %step = and i64 %more.bytes, -64
  %data.bytes = mul i64 %count, %step
  %bytes = add i64 %table.bytes, %data.bytes
  %table = call ptr @tecomp.allocate(i64 %bytes)
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
declare i64 @llvm.smax.i64(i64, i64)
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
attributes #3 = { nounwind noinline }
"""

# A job is { body, captured, begin, extent, chunk, next }. The caller claims chunks like the
# threads it starts, so that a thread that cannot be started costs time and nothing else, and no
# thread outlives the call: nothing is left over in a process that forks.
PARALLEL = """\
define internal void @tecomp.parallel(ptr %body, ptr %captured, i64 %begin, i64 %extent, \
i64 %threads) #4 {
entry:
  %some = icmp sgt i64 %extent, 0
  br i1 %some, label %sized, label %done
sized:
  %few = call i64 @llvm.smin.i64(i64 %extent, i64 %threads)
  %capped = call i64 @llvm.smin.i64(i64 %few, i64 256)
  %serial = icmp sle i64 %capped, 1
  br i1 %serial, label %alone, label %together
alone:
  %end.alone = add i64 %begin, %extent
  call void %body(ptr %captured, i64 %begin, i64 %end.alone)
  br label %done
together:
  %job = alloca { ptr, ptr, i64, i64, i64, i64 }, align 64
  %handles = alloca i64, i64 %capped
  %shares = mul i64 %capped, 4
  %share = sdiv i64 %extent, %shares
  %chunk = call i64 @llvm.smax.i64(i64 %share, i64 1)
  store ptr %body, ptr %job
  %at.captured = getelementptr i64, ptr %job, i64 1
  store ptr %captured, ptr %at.captured
  %at.begin = getelementptr i64, ptr %job, i64 2
  store i64 %begin, ptr %at.begin
  %at.extent = getelementptr i64, ptr %job, i64 3
  store i64 %extent, ptr %at.extent
  %at.chunk = getelementptr i64, ptr %job, i64 4
  store i64 %chunk, ptr %at.chunk
  %at.next = getelementptr i64, ptr %job, i64 5
  store i64 0, ptr %at.next
  %helpers = sub i64 %capped, 1
  br label %start
start:
  %k = phi i64 [ 0, %together ], [ %k.next, %started ]
  %handle = getelementptr i64, ptr %handles, i64 %k
  %status = call i32 @pthread_create(ptr %handle, ptr null, ptr @tecomp.worker, ptr %job)
  %refused = icmp ne i32 %status, 0
  br i1 %refused, label %work, label %started
started:
  %k.next = add i64 %k, 1
  %enough = icmp sge i64 %k.next, %helpers
  br i1 %enough, label %work, label %start
work:
  %running = phi i64 [ %k, %start ], [ %k.next, %started ]
  %ignored = call ptr @tecomp.worker(ptr %job)
  br label %join
join:
  %j = phi i64 [ 0, %work ], [ %j.next, %wait ]
  %left = icmp slt i64 %j, %running
  br i1 %left, label %wait, label %done
wait:
  %started.handle = getelementptr i64, ptr %handles, i64 %j
  %thread = load i64, ptr %started.handle
  %unused = call i32 @pthread_join(i64 %thread, ptr null)
  %j.next = add i64 %j, 1
  br label %join
done:
  ret void
}
define internal ptr @tecomp.worker(ptr %job) #4 {
entry:
  %body = load ptr, ptr %job
  %at.captured = getelementptr i64, ptr %job, i64 1
  %captured = load ptr, ptr %at.captured
  %at.begin = getelementptr i64, ptr %job, i64 2
  %begin = load i64, ptr %at.begin
  %at.extent = getelementptr i64, ptr %job, i64 3
  %extent = load i64, ptr %at.extent
  %at.chunk = getelementptr i64, ptr %job, i64 4
  %chunk = load i64, ptr %at.chunk
  %at.next = getelementptr i64, ptr %job, i64 5
  br label %claim
claim:
  %first = atomicrmw add ptr %at.next, i64 %chunk monotonic
  %is.left = icmp slt i64 %first, %extent
  br i1 %is.left, label %run, label %done
run:
  %stop = add i64 %first, %chunk
  %last = call i64 @llvm.smin.i64(i64 %stop, i64 %extent)
  %from = add i64 %begin, %first
  %to = add i64 %begin, %last
  call void %body(ptr %captured, i64 %from, i64 %to)
  br label %claim
done:
  ret ptr null
}
declare i64 @llvm.smin.i64(i64, i64)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
attributes #4 = { nounwind noinline }
"""


def runtime_text(functions: str) -> str:
    """The parts of the runtime that the text of some functions calls."""
    parts = []
    if "@tecomp.record(" in functions:
        parts.append(RECORD)
    if "@tecomp.allocate" in functions:
        parts.append(ALLOCATE)
    if "@tecomp.parallel(" in functions:
        parts.append(PARALLEL)
        if "@tecomp.allocate" not in functions:
            parts.append("declare i64 @llvm.smax.i64(i64, i64)\n")
    return "\n".join(parts)

"""LLVM IR of the thread pool and its workers."""

from __future__ import annotations

from tecomp.codegen.runtime.runtime_structs import MAX_PROCESSORS, MAX_WORKERS, runtime_code

# Wakes two sleeping workers; each wakes two more, so wake-up takes a logarithmic number of steps.
_WAKE = """\
define internal void @wake(i64 %wanted) #0 {
entry:
  br label %word
word:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %woken = phi i64 [ 0, %entry ], [ %woken.now, %next ]
  %first = shl i64 %k, 6
  %is.left = icmp ult i64 %first, %wanted
  br i1 %is.left, label %look, label %out
look:
  %woken.now = phi i64 [ %woken, %word ], [ %woken.now, %look.again ], [ %woken.next, %up ]
  %at.bits = getelementptr i64, ptr @sleepers, i64 %k
  %bits = load atomic i64, ptr %at.bits seq_cst, align 8
  %count = sub i64 %wanted, %first
  %is.whole = icmp uge i64 %count, 64
  %amount = and i64 %count, 63
  %power = shl i64 1, %amount
  %low.bits = sub i64 %power, 1
  %mask = select i1 %is.whole, i64 -1, i64 %low.bits
  %asleep = and i64 %bits, %mask
  %is.none = icmp eq i64 %asleep, 0
  br i1 %is.none, label %next, label %pick
pick:
  %negative = sub i64 0, %asleep
  %bit = and i64 %asleep, %negative
  %others = xor i64 %bit, -1
  %old = atomicrmw and ptr %at.bits, i64 %others seq_cst
  %was = and i64 %old, %bit
  %is.mine = icmp ne i64 %was, 0
  br i1 %is.mine, label %up, label %look.again
look.again:
  br label %look
up:
  %place = call i64 @llvm.cttz.i64(i64 %bit, i1 true)
  %index = add i64 %first, %place
  %worker = getelementptr %Worker, ptr @workers, i64 %index
  %mutex = field Worker.mutex, ptr %worker
  %condition = field Worker.condition, ptr %worker
  %awake = field Worker.awake, ptr %worker
  %a = call i32 @pthread_mutex_lock(ptr %mutex)
  store i32 1, ptr %awake
  %b = call i32 @pthread_cond_signal(ptr %condition)
  %c = call i32 @pthread_mutex_unlock(ptr %mutex)
  %woken.next = add i64 %woken.now, 1
  %is.enough = icmp uge i64 %woken.next, 2
  br i1 %is.enough, label %out, label %look
next:
  %k.next = add i64 %k, 1
  br label %word
out:
  ret void
}
"""

_TIME = """\
define internal i64 @nanoseconds() #0 {
entry:
  %time = alloca { i64, i64 }
  %status = call i32 @clock_gettime(i32 $MONOTONIC, ptr %time)
  %seconds = load i64, ptr %time
  %at.rest = getelementptr { i64, i64 }, ptr %time, i32 0, i32 1
  %rest = load i64, ptr %at.rest
  %scaled = mul i64 %seconds, 1000000000
  %sum = add i64 %scaled, %rest
  ret i64 %sum
}
"""

# A worker never returns. The job that a worker has seen may be finished when it claims a chunk. It
# then claims a chunk of the next job, which is valid too.
_WORKER = """\
define internal void @serve(i64 %index, i64 %id, i64 %processor) #0 {
entry:
  %me = getelementptr %Worker, ptr @workers, i64 %index
  %mutex = field Worker.mutex, ptr %me
  %condition = field Worker.condition, ptr %me
  %awake = field Worker.awake, ptr %me
  %at.id = field Worker.id, ptr %me
  %a = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %b = call i32 @pthread_cond_init(ptr %condition, ptr null)
  %id.short = trunc i64 %id to i32
  store i32 %id.short, ptr %at.id
  store ptr @table, ptr %me
  %at.busy = field Thread.busy, ptr %me
  store i64 1, ptr %at.busy
  %word = lshr i64 %index, 6
  %at.bits = getelementptr i64, ptr @sleepers, i64 %word
  %place = and i64 %index, 63
  %bit = shl i64 1, %place
  %others = xor i64 %bit, -1
  %is.pinned = icmp ult i64 %processor, $MAX_PROCESSORS
  br i1 %is.pinned, label %own, label %idle
own:
  %at.owner = getelementptr i16, ptr @owners, i64 %processor
  %number = add i64 %index, 1
  %owner = trunc i64 %number to i16
  store atomic i16 %owner, ptr %at.owner release, align 2
  br label %idle
idle:
  %seen = phi i64 [ 0, %entry ], [ 0, %own ], [ %job, %work ], [ %seen.next, %cancel ], \
[ %seen.next, %woken ], [ %seen.next, %pass.on ]
  %start = call i64 @nanoseconds()
  %patience = load atomic i64, ptr @patience monotonic, align 8
  %end = add i64 %start, %patience
  br label %look
look:
  %tries = phi i64 [ 0, %idle ], [ %tries.next, %rest ], [ %tries.next, %clock ]
  %seen.now = phi i64 [ %seen, %idle ], [ %seen.next, %rest ], [ %seen.next, %clock ]
  %job = load atomic i64, ptr @job acquire, align 8
  %is.new = icmp ne i64 %job, %seen.now
  br i1 %is.new, label %posted, label %rest
posted:
  %wanted = and i64 %job, $JOB_WORKERS
  %is.for.me = icmp ult i64 %index, %wanted
  br i1 %is.for.me, label %work, label %rest
work:
  call void @run_chunks(ptr %me)
  call void @settle(ptr %me)
  br label %idle
rest:
  %seen.next = phi i64 [ %seen.now, %look ], [ %job, %posted ]
  $PAUSE
  %tries.next = add i64 %tries, 1
  %round = and i64 %tries.next, 15
  %is.time = icmp eq i64 %round, 0
  br i1 %is.time, label %clock, label %look
clock:
  %now = call i64 @nanoseconds()
  %is.over = icmp sge i64 %now, %end
  br i1 %is.over, label %sleep, label %look
sleep:
  %set = atomicrmw or ptr %at.bits, i64 %bit seq_cst
  %again = load atomic i64, ptr @job seq_cst, align 8
  %is.changed = icmp ne i64 %again, %seen.next
  br i1 %is.changed, label %cancel, label %doze
cancel:
  %cleared = atomicrmw and ptr %at.bits, i64 %others seq_cst
  %still = and i64 %cleared, %bit
  %is.mine = icmp ne i64 %still, 0
  br i1 %is.mine, label %idle, label %doze
doze:
  %c = call i32 @pthread_mutex_lock(ptr %mutex)
  br label %test
test:
  %called = load i32, ptr %awake
  %is.called = icmp ne i32 %called, 0
  br i1 %is.called, label %woken, label %wait
wait:
  %d = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %test
woken:
  store i32 0, ptr %awake
  %e = call i32 @pthread_mutex_unlock(ptr %mutex)
  ; For a job that it has seen it was woken late: to wake others then would go on for ever.
  %latest = load atomic i64, ptr @job acquire, align 8
  %is.unseen = icmp ne i64 %latest, %seen.next
  br i1 %is.unseen, label %pass.on, label %idle
pass.on:
  %helpers = and i64 %latest, $JOB_WORKERS
  call void @wake(i64 %helpers)
  br label %idle
}
"""

# If the scheduler has moved the caller to the processor of a worker, the worker is pinned to the
# former processor of the caller. Otherwise both would share one processor until rebalancing.
_FOLLOW = """\
declare i32 @sched_getcpu()
declare i32 @sched_setaffinity(i32, i64, ptr)
define internal void @follow() #0 {
entry:
  %set = alloca [$PROCESSOR_BYTES x i8], align 8
  %here = call i32 @sched_getcpu()
  %is.known = icmp ult i32 %here, $MAX_PROCESSORS
  br i1 %is.known, label %look, label %out
look:
  %at.owner = getelementptr i16, ptr @owners, i32 %here
  %owner = load atomic i16, ptr %at.owner acquire, align 2
  %home = load i32, ptr @home
  %is.owned = icmp ne i16 %owner, 0
  %has.home = icmp ult i32 %home, $MAX_PROCESSORS
  %is.clash = and i1 %is.owned, %has.home
  br i1 %is.clash, label %move, label %out
move:
  %number = zext i16 %owner to i64
  %index = sub i64 %number, 1
  %worker = getelementptr %Worker, ptr @workers, i64 %index
  %at.id = field Worker.id, ptr %worker
  %id = load i32, ptr %at.id
  call void @llvm.memset.p0.i64(ptr %set, i8 0, i64 $PROCESSOR_BYTES, i1 false)
  %word = lshr i32 %home, 6
  %at.word = getelementptr i64, ptr %set, i32 %word
  %place = and i32 %home, 63
  %wide = zext i32 %place to i64
  %bit = shl i64 1, %wide
  store i64 %bit, ptr %at.word
  %status = call i32 @sched_setaffinity(i32 %id, i64 $PROCESSOR_BYTES, ptr %set)
  %at.home = getelementptr i16, ptr @owners, i32 %home
  store atomic i16 %owner, ptr %at.home release, align 2
  store atomic i16 0, ptr %at.owner release, align 2
  store i32 %here, ptr @home
  br label %out
out:
  ret void
}
"""

_PAUSES = {
    "x86_64": ("call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    "aarch64": ("call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
}


def pause(triple: str) -> str:
    """Return the spin-wait hint instruction of a machine; empty if unknown."""
    return _PAUSES.get(_processor(triple), ("", ""))[0]


def has_affinity(triple: str) -> bool:
    """Return whether threads can be pinned to a processor."""
    return "linux" in triple


def worker_text(triple: str) -> str:
    """Return the LLVM IR of the workers for a target triple."""
    # The id of CLOCK_MONOTONIC depends on the operating system.
    clock = "6" if "darwin" in triple or "macos" in triple else "1"
    declared = _PAUSES.get(_processor(triple), ("", ""))[1]
    parts = [_WAKE, _TIME, _WORKER, declared, *[_FOLLOW] * has_affinity(triple)]
    return runtime_code("\n".join(parts), MONOTONIC=clock, PAUSE=pause(triple))


def _processor(triple: str) -> str:
    name = triple.partition("-")[0]
    return "aarch64" if name == "arm64" else name


_CONSTANTS = {
    # Sizes of the bit set of sleeping workers and of the table of processor owners.
    "SLEEPER_WORDS": (MAX_WORKERS + 63) // 64,
    "SLEEPER_BYTES": 8 * ((MAX_WORKERS + 63) // 64),
    "OWNER_BYTES": 2 * MAX_PROCESSORS,
}

_STATE = """\
@job = internal global i64 0, align $ALIGNMENT
@ticket = internal global i64 0, align $ALIGNMENT
@pending = internal global i64 0, align $ALIGNMENT
@sleepers = internal global [$SLEEPER_WORDS x i64] zeroinitializer, align $ALIGNMENT
@busy = internal global i32 0, align $ALIGNMENT
@work = internal global %Work zeroinitializer, align $ALIGNMENT
@waits = internal global i32 0, align $ALIGNMENT
@mutex = internal global [64 x i8] zeroinitializer, align $ALIGNMENT
@condition = internal global [64 x i8] zeroinitializer, align $ALIGNMENT
@threads = internal global i64 0, align $ALIGNMENT
@started = internal global i64 0, align 8
@patience = internal global i64 0, align 8
@home = internal global i32 -1, align 8
@owners = internal global [$MAX_PROCESSORS x i16] zeroinitializer, align $ALIGNMENT
@workers = internal global [$MAX_WORKERS x %Worker] zeroinitializer, align $ALIGNMENT

declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.cttz.i64(i64, i1)
declare i64 @llvm.ctlz.i64(i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i32 @clock_gettime(i32, ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
"""

# `first_iteration` returns the first iteration of a chunk (guided self-scheduling). Half of the
# iterations form one chunk for each thread, half of the rest again, and so on `halvings` times; the
# remaining iterations are the last batch. Longer chunks of an uneven batch come first. Chunks are
# large, but the last ones are small enough for a balanced finish.
_CHUNKS = """\
define internal i64 @first_iteration(i64 %chunk, i64 %extent, i64 %threads, i64 %halvings) #0 {
entry:
  %batch = udiv i64 %chunk, %threads
  %halved = call i64 @llvm.umin.i64(i64 %batch, i64 %halvings)
  %before = mul i64 %halved, %threads
  %place = sub i64 %chunk, %before
  %left = lshr i64 %extent, %halved
  %start = sub i64 %extent, %left
  %half = lshr i64 %left, 1
  %is.last = icmp eq i64 %halved, %halvings
  %after = select i1 %is.last, i64 0, i64 %half
  %count = sub i64 %left, %after
  %each = udiv i64 %count, %threads
  %longer = urem i64 %count, %threads
  %even = mul i64 %place, %each
  %more = call i64 @llvm.umin.i64(i64 %place, i64 %longer)
  %offset = add i64 %even, %more
  %first = add i64 %start, %offset
  ret i64 %first
}
define internal void @run_chunks(ptr %thread) #0 {
entry:
  br label %claim
claim:
  %done = phi i64 [ 0, %entry ], [ %done.next, %next ]
  %claimed = atomicrmw add ptr @ticket, i64 1 acq_rel
  %chunk = and i64 %claimed, 4294967295
  %chunks = lshr i64 %claimed, 32
  %is.left = icmp ult i64 %chunk, %chunks
  br i1 %is.left, label %measure, label %stop
measure:
  %at.extent = field Work.extent, ptr @work
  %extent = load i64, ptr %at.extent
  %at.threads = field Work.threads, ptr @work
  %threads = load i64, ptr %at.threads
  %at.halvings = field Work.halvings, ptr @work
  %halvings = load i64, ptr %at.halvings
  %first = call i64 @first_iteration(i64 %chunk, i64 %extent, i64 %threads, i64 %halvings)
  %following = add i64 %chunk, 1
  %last = call i64 @first_iteration(i64 %following, i64 %extent, i64 %threads, i64 %halvings)
  %is.some = icmp ult i64 %first, %last
  br i1 %is.some, label %run, label %next
run:
  %body = load ptr, ptr @work
  %at.captured = field Work.captured, ptr @work
  %captured = load ptr, ptr %at.captured
  %at.begin = field Work.begin, ptr @work
  %begin = load i64, ptr %at.begin
  %from = add i64 %begin, %first
  %to = add i64 %begin, %last
  call void %body(ptr %thread, ptr %captured, i64 %from, i64 %to)
  br label %next
next:
  %done.next = add i64 %done, 1
  br label %claim
stop:
  %is.idle = icmp eq i64 %done, 0
  br i1 %is.idle, label %out, label %report
report:
  %before = atomicrmw sub ptr @pending, i64 %done seq_cst
  %is.last = icmp eq i64 %before, %done
  br i1 %is.last, label %finished, label %out
finished:
  %waits = load atomic i32, ptr @waits seq_cst, align 4
  %is.awaited = icmp ne i32 %waits, 0
  br i1 %is.awaited, label %tell, label %out
tell:
  %a = call i32 @pthread_mutex_lock(ptr @mutex)
  %b = call i32 @pthread_cond_signal(ptr @condition)
  %c = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %out
out:
  ret void
}
"""

_PARALLEL = """\
; Of `least` iterations or more each thread has some: fewer are done sooner than handed over.
define internal void @parallel(
  ptr %thread, ptr %body, ptr %captured, i64 %begin, i64 %extent, i64 %least
) #0 {
entry:
  %threads = load atomic i64, ptr @threads monotonic, align 8
  %worth = sdiv i64 %extent, %least
  %few = call i64 @llvm.smin.i64(i64 %worth, i64 %threads)
  %started = load atomic i64, ptr @started monotonic, align 8
  %most = add i64 %started, 1
  %count = call i64 @llvm.smin.i64(i64 %few, i64 %most)
  %is.many = icmp sgt i64 %count, 1
  ; The products of `first_iteration` fit into 64 bits below this.
  %is.sane = icmp slt i64 %extent, 281474976710656
  %is.wanted = and i1 %is.many, %is.sane
  br i1 %is.wanted, label %try, label %alone
try:
  %pair = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %is.mine = extractvalue { i32, i1 } %pair, 1
  br i1 %is.mine, label %together, label %alone
alone:
  %is.some = icmp sgt i64 %extent, 0
  br i1 %is.some, label %serial, label %out
serial:
  %end = add i64 %begin, %extent
  call void %body(ptr %thread, ptr %captured, i64 %begin, i64 %end)
  br label %out
together:
  $FOLLOW
  ; Halve while at least two iterations are left for each thread, up to six times.
  %pairs = udiv i64 %extent, %count
  %zeros = call i64 @llvm.ctlz.i64(i64 %pairs, i1 false)
  %bits = sub i64 63, %zeros
  %halvings = call i64 @llvm.smin.i64(i64 %bits, i64 6)
  %batches = add i64 %halvings, 1
  %chunks = mul i64 %batches, %count
  %at.captured = field Work.captured, ptr @work
  %at.begin = field Work.begin, ptr @work
  %at.extent = field Work.extent, ptr @work
  %at.threads = field Work.threads, ptr @work
  %at.halvings = field Work.halvings, ptr @work
  store ptr %body, ptr @work
  store ptr %captured, ptr %at.captured
  store i64 %begin, ptr %at.begin
  store i64 %extent, ptr %at.extent
  store i64 %count, ptr %at.threads
  store i64 %halvings, ptr %at.halvings
  store atomic i64 %chunks, ptr @pending monotonic, align 8
  %ticket = shl i64 %chunks, 32
  store atomic i64 %ticket, ptr @ticket release, align 8
  %helpers = sub i64 %count, 1
  %old = load atomic i64, ptr @job monotonic, align 8
  %cleared = and i64 %old, -$JOB
  %later = add i64 %cleared, $JOB
  %job = or i64 %later, %helpers
  store atomic i64 %job, ptr @job seq_cst, align 8
  call void @wake(i64 %helpers)
  call void @run_chunks(ptr %thread)
  %patience = load atomic i64, ptr @patience monotonic, align 8
  %start = call i64 @nanoseconds()
  %late = add i64 %start, %patience
  br label %join
join:
  %tries = phi i64 [ 0, %together ], [ %tries.next, %rest ], [ %tries.next, %clock ]
  %left = load atomic i64, ptr @pending acquire, align 8
  %is.done = icmp eq i64 %left, 0
  br i1 %is.done, label %done, label %rest
rest:
  $PAUSE
  %tries.next = add i64 %tries, 1
  %round = and i64 %tries.next, 15
  %is.time = icmp eq i64 %round, 0
  br i1 %is.time, label %clock, label %join
clock:
  %now = call i64 @nanoseconds()
  %is.late = icmp sge i64 %now, %late
  br i1 %is.late, label %sleep, label %join
sleep:
  store atomic i32 1, ptr @waits seq_cst, align 4
  %a = call i32 @pthread_mutex_lock(ptr @mutex)
  br label %test
test:
  %left.still = load atomic i64, ptr @pending seq_cst, align 8
  %is.done.now = icmp eq i64 %left.still, 0
  br i1 %is.done.now, label %woken, label %wait
wait:
  %b = call i32 @pthread_cond_wait(ptr @condition, ptr @mutex)
  br label %test
woken:
  %c = call i32 @pthread_mutex_unlock(ptr @mutex)
  store atomic i32 0, ptr @waits seq_cst, align 4
  br label %done
done:
  store atomic i32 0, ptr @busy release, align 4
  br label %out
out:
  ret void
}
define internal void @configure(i64 %threads, i64 %started, i64 %patience, i64 %home) #0 {
entry:
  %processor = trunc i64 %home to i32
  store i32 %processor, ptr @home
  store atomic i64 %patience, ptr @patience monotonic, align 8
  store atomic i64 %started, ptr @started monotonic, align 8
  store atomic i64 %threads, ptr @threads monotonic, align 8
  ret void
}
; A process that has just begun, or was forked off another: no workers yet, nobody inside.
define internal void @begin() #0 {
entry:
  store i32 -1, ptr @home
  store i64 0, ptr @ticket
  store i64 0, ptr @pending
  store i32 0, ptr @busy
  store i32 0, ptr @waits
  store i64 0, ptr @threads
  store i64 0, ptr @started
  call void @llvm.memset.p0.i64(ptr @sleepers, i8 0, i64 $SLEEPER_BYTES, i1 false)
  call void @llvm.memset.p0.i64(ptr @owners, i8 0, i64 $OWNER_BYTES, i1 false)
  %a = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %b = call i32 @pthread_cond_init(ptr @condition, ptr null)
  br label %worker
worker:
  %k = phi i64 [ 0, %entry ], [ %k.next, %worker ]
  %me = getelementptr %Worker, ptr @workers, i64 %k
  %awake = field Worker.awake, ptr %me
  store i32 0, ptr %awake
  call void @abandon(ptr %me)
  %k.next = add i64 %k, 1
  %is.more = icmp ult i64 %k.next, $MAX_WORKERS
  br i1 %is.more, label %worker, label %slot
slot:
  %s = phi i64 [ 0, %worker ], [ %s.next, %slot ]
  %thread = getelementptr %Thread, ptr @callers, i64 %s
  store ptr @table, ptr %thread
  call void @abandon(ptr %thread)
  %s.next = add i64 %s, 1
  %is.another = icmp ult i64 %s.next, $CALLERS
  br i1 %is.another, label %slot, label %out
out:
  ret void
}
"""


def pool_text(triple: str) -> str:
    """Return the LLVM IR of the thread pool for a target triple."""
    follow = "call void @follow()" if has_affinity(triple) else ""
    text = "\n".join([_STATE, _CHUNKS, _PARALLEL])
    pool = runtime_code(text, PAUSE=pause(triple), FOLLOW=follow, **_CONSTANTS)
    return "\n".join([pool, worker_text(triple)])

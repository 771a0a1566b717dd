"""The pool of threads that parallel loops share, as LLVM IR.

One job runs at a time. Its iterations are cut into chunks, which the caller and the workers claim
from one counter; the job is done when all chunks are, and not when all workers are, so a worker
that is late or gone costs time and nothing else. Who finds the pool busy runs its iterations alone.

Workers look at `@job` for a while before they sleep, because the next job is often near. What is
shared lies on cache lines of its own.

    @job       how many jobs there have been, times JOB, plus the workers that may help
    @ticket    chunks of the job, times 2 ** 32, plus the next one to claim
    @pending   chunks that are not finished
    @sleepers  a bit for each worker that sleeps, or is about to

Sleeping is a handshake of four sequentially consistent operations: a worker sets its bit and then
reads `@job`, the caller writes `@job` and then reads the bits, so at least one sees the other.
"""

from __future__ import annotations

from tecomp.codegen.runtime.structures import MAX_PROCESSORS, MAX_WORKERS, runtime_code
from tecomp.codegen.runtime.worker_text import has_affinity, pause, worker_text

_CONSTANTS = {
    # Of the workers' bits, and of the owners of processors.
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

# The first iteration of a chunk. Half of the iterations are one chunk a thread, half of what is
# left is one chunk a thread again, and so on `halvings` times; what is left then, too. Of uneven
# chunks the longer come first. So chunks are large, and yet the last ones are small enough that no
# thread waits long for another.
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
    """The pool for a machine, in LLVM's name for it."""
    follow = "call void @follow()" if has_affinity(triple) else ""
    text = "\n".join([_STATE, _CHUNKS, _PARALLEL])
    own = runtime_code(text, PAUSE=pause(triple), FOLLOW=follow, **_CONSTANTS)
    return "\n".join([own, worker_text(triple)])

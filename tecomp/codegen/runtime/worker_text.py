"""The workers of the pool, as LLVM IR: how they wait for jobs, sleep, wake and move.

`pool_text.py` says what the globals mean, and why no worker misses a job while it falls asleep.
"""

from __future__ import annotations

from tecomp.codegen.runtime.structures import runtime_code

# Wakes two workers that sleep; each wakes two more, so that many are up after few steps.
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

# A worker never returns. It may be looking at a job that is over by the time it claims a chunk:
# what it gets then is a chunk of the next job, for which its help is as welcome.
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

# Where the caller has been moved to the processor of a worker, the worker moves to where the
# caller was: otherwise both would take turns until the system finds out.
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
    """What a thread does while it waits, for its neighbour on the same core; often nothing."""
    return _PAUSES.get(_processor(triple), ("", ""))[0]


def has_affinity(triple: str) -> bool:
    """Whether threads can be moved to a processor."""
    return "linux" in triple


def worker_text(triple: str) -> str:
    """The workers for a machine, in LLVM's name for it."""
    # The number of the steady clock is the system's own.
    clock = "6" if "darwin" in triple or "macos" in triple else "1"
    declared = _PAUSES.get(_processor(triple), ("", ""))[1]
    parts = [_WAKE, _TIME, _WORKER, declared, *[_FOLLOW] * has_affinity(triple)]
    return runtime_code("\n".join(parts), MONOTONIC=clock, PAUSE=pause(triple))


def _processor(triple: str) -> str:
    name = triple.partition("-")[0]
    return "aarch64" if name == "arm64" else name

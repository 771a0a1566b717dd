"""Calls of kernels with plain arguments, as LLVM IR: checks, then the code, without Python between.

`call` is the body of a built-in function of Python. It takes NumPy arrays of the exact type, shape
and flags that a plan lists, and Python's own numbers in range. Anything else is left to the careful
checks, which also make the messages, so nothing is dropped here: what is not plain is not refused.

Where an array keeps its address, shape and flags is part of NumPy's ABI (`PyArrayObject_fields` in
ndarraytypes.h): the macros that compiled extensions use have it built in. `plan.py` compares it
with what Python says before any of this is used.

A plan is a list of 64-bit words:

    entry, arguments, words of the block, uses threads, scalars, arrays
    for each scalar: argument, kind, lowest, highest     (kinds: integer, float32, float64, bool)
    for each array: argument, type of its elements, flags it must have, axes, bytes of an element,
                    whether it is written, the mark of its layout or 0 for any,
                    and for each axis: kind, value   (kinds: extent, binds a word, equals a word)

An array whose type is `PackedArray` is plain as well, if it has that mark or none.

Each record of an array on the stack is { first byte, end, whether it is written }.
"""

from __future__ import annotations

INTEGER, FLOAT32, FLOAT64, BOOL = range(4)
EXTENT, BINDS, EQUALS = range(3)
# Of the fields of an array, counted from the end of the head that all objects have.
DATA, AXES, SHAPE, STRIDES, DTYPE, FLAGS = 0, 8, 16, 24, 40, 48
# What `@python` holds: functions of Python's C API, then objects.
API = (
    "PyCapsule_GetPointer",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyBytes_FromStringAndSize",
    "PyLong_AsLongLong",
    "PyErr_Occurred",
    "PyErr_Clear",
    "PyFloat_AsDouble",
    "Py_IncRef",
)
OBJECTS = (None, False, True, int, float)

_STATE = f"""\
@python = internal global [{len(API) + len(OBJECTS) + 2} x ptr] zeroinitializer, align 128
@variable = internal constant [19 x i8] c"TECOMP_NUM_THREADS\\00"
@asked = internal global [64 x i8] zeroinitializer, align 64

declare ptr @getenv(ptr)
declare i32 @strcmp(ptr, ptr)
"""

_CALL = """\
define internal ptr @call(ptr %self, ptr %given, i64 %count) #0 {
entry:
  %get = load ptr, ptr @python
  %plan = call ptr %get(ptr %self, ptr null)
  %at.expected = getelementptr i64, ptr %plan, i64 1
  %expected = load i64, ptr %at.expected
  %fits = icmp eq i64 %count, %expected
  br i1 %fits, label %start, label %refuse
start:
  %at.words = getelementptr i64, ptr %plan, i64 2
  %at.threads = getelementptr i64, ptr %plan, i64 3
  %at.scalars = getelementptr i64, ptr %plan, i64 4
  %at.arrays = getelementptr i64, ptr %plan, i64 5
  %first = getelementptr i64, ptr %plan, i64 6
  %words = load i64, ptr %at.words
  %uses.threads = load i64, ptr %at.threads
  %scalars = load i64, ptr %at.scalars
  %arrays = load i64, ptr %at.arrays
  %block = alloca i64, i64 %words, align 64
  %spans = alloca { i64, i64, i64 }, i64 %arrays, align 64
  call void @llvm.memset.p0.i64(ptr %block, i8 0, i64 40, i1 false)
  br label %scalar
scalar:
  %k = phi i64 [ 0, %start ], [ %k.next, %scalar.ok ]
  %item = phi ptr [ %first, %start ], [ %item.next, %scalar.ok ]
  %is.scalar = icmp ult i64 %k, %scalars
  br i1 %is.scalar, label %scalar.check, label %array
scalar.check:
  %scalar.fits = call i1 @take_scalar(ptr %item, ptr %given, ptr %block)
  br i1 %scalar.fits, label %scalar.ok, label %refuse
scalar.ok:
  %k.next = add i64 %k, 1
  %item.next = getelementptr i64, ptr %item, i64 4
  br label %scalar
array:
  %a = phi i64 [ 0, %scalar ], [ %a.next, %array.ok ]
  %place = phi ptr [ %item, %scalar ], [ %place.next, %array.ok ]
  %is.array = icmp ult i64 %a, %arrays
  br i1 %is.array, label %array.check, label %overlap
array.check:
  %span = getelementptr { i64, i64, i64 }, ptr %spans, i64 %a
  %place.next = call ptr @take_array(ptr %place, ptr %given, ptr %block, ptr %span)
  %array.fits = icmp ne ptr %place.next, null
  br i1 %array.fits, label %array.ok, label %refuse
array.ok:
  %a.next = add i64 %a, 1
  br label %array
overlap:
  %apart = call i1 @are_apart(ptr %spans, i64 %arrays)
  br i1 %apart, label %threads, label %refuse
threads:
  %is.parallel = icmp ne i64 %uses.threads, 0
  br i1 %is.parallel, label %environment, label %go
environment:
  %same = call i1 @is_configured()
  br i1 %same, label %go, label %refuse
go:
  %at.save = getelementptr ptr, ptr @python, i64 1
  %save = load ptr, ptr %at.save
  %at.restore = getelementptr ptr, ptr @python, i64 2
  %restore = load ptr, ptr %at.restore
  %code = load ptr, ptr %plan
  %state = call ptr %save()
  %status = call i32 @run(ptr %code, ptr %block)
  call void %restore(ptr %state)
  %is.failure = icmp ne i32 %status, 0
  br i1 %is.failure, label %failure, label %answer
failure:
  %at.bytes = getelementptr ptr, ptr @python, i64 3
  %bytes = load ptr, ptr %at.bytes
  %record = getelementptr i64, ptr %block, i64 1
  %copy = call ptr %bytes(ptr %record, i64 32)
  ret ptr %copy
refuse:
  br label %answer
answer:
  %which = phi i64 [ 9, %go ], [ 10, %refuse ]
  %at.result = getelementptr ptr, ptr @python, i64 %which
  %result = load ptr, ptr %at.result
  %at.keep = getelementptr ptr, ptr @python, i64 8
  %keep = load ptr, ptr %at.keep
  call void %keep(ptr %result)
  ret ptr %result
}
"""

_SCALAR = """\
define internal i1 @take_scalar(ptr %item, ptr %given, ptr %block) #0 {
entry:
  %argument = load i64, ptr %item
  %at.kind = getelementptr i64, ptr %item, i64 1
  %kind = load i64, ptr %at.kind
  %at.object = getelementptr ptr, ptr %given, i64 %argument
  %object = load ptr, ptr %at.object
  %at.type = getelementptr i8, ptr %object, i64 TYPE
  %type = load ptr, ptr %at.type
  %number = add i64 %argument, 5
  %word = getelementptr i64, ptr %block, i64 %number
  switch i64 %kind, label %bool [ i64 0, label %integer
                                  i64 1, label %float
                                  i64 2, label %float ]
integer:
  %at.int = getelementptr ptr, ptr @python, i64 12
  %int = load ptr, ptr %at.int
  %is.int = icmp eq ptr %type, %int
  br i1 %is.int, label %convert, label %no
convert:
  %at.as.long = getelementptr ptr, ptr @python, i64 4
  %as.long = load ptr, ptr %at.as.long
  %value = call i64 %as.long(ptr %object)
  %is.odd = icmp eq i64 %value, -1
  br i1 %is.odd, label %asked, label %range
asked:
  %at.occurred = getelementptr ptr, ptr @python, i64 5
  %occurred = load ptr, ptr %at.occurred
  %error = call ptr %occurred()
  %is.error = icmp ne ptr %error, null
  br i1 %is.error, label %clear, label %range
clear:
  %at.clear = getelementptr ptr, ptr @python, i64 6
  %forget = load ptr, ptr %at.clear
  call void %forget()
  br label %no
range:
  %at.low = getelementptr i64, ptr %item, i64 2
  %low = load i64, ptr %at.low
  %at.high = getelementptr i64, ptr %item, i64 3
  %high = load i64, ptr %at.high
  %not.low = icmp sge i64 %value, %low
  %not.high = icmp sle i64 %value, %high
  %fits = and i1 %not.low, %not.high
  store i64 %value, ptr %word
  ret i1 %fits
float:
  %at.float = getelementptr ptr, ptr @python, i64 13
  %float.type = load ptr, ptr %at.float
  %is.float = icmp eq ptr %type, %float.type
  br i1 %is.float, label %real, label %no
real:
  %at.as.double = getelementptr ptr, ptr @python, i64 7
  %as.double = load ptr, ptr %at.as.double
  %double = call double %as.double(ptr %object)
  %is.single = icmp eq i64 %kind, 1
  br i1 %is.single, label %single, label %whole
single:
  %short = fptrunc double %double to float
  %bits = bitcast float %short to i32
  %wide = zext i32 %bits to i64
  store i64 %wide, ptr %word
  ret i1 true
whole:
  store double %double, ptr %word
  ret i1 true
bool:
  %at.false = getelementptr ptr, ptr @python, i64 10
  %false.object = load ptr, ptr %at.false
  %at.true = getelementptr ptr, ptr @python, i64 11
  %true.object = load ptr, ptr %at.true
  %is.false = icmp eq ptr %object, %false.object
  %is.true = icmp eq ptr %object, %true.object
  %is.bool = or i1 %is.false, %is.true
  %truth = zext i1 %is.true to i64
  store i64 %truth, ptr %word
  ret i1 %is.bool
no:
  ret i1 false
}
"""

# Gives where the plan goes on; null if the array is not plain.
_ARRAY = """\
define internal ptr @take_array(ptr %item, ptr %given, ptr %block, ptr %span) #0 {
entry:
  %argument = load i64, ptr %item
  %at.wanted.dtype = getelementptr i64, ptr %item, i64 1
  %wanted.dtype = load ptr, ptr %at.wanted.dtype
  %at.wanted.flags = getelementptr i64, ptr %item, i64 2
  %wanted.flags = load i64, ptr %at.wanted.flags
  %at.wanted.axes = getelementptr i64, ptr %item, i64 3
  %wanted.axes = load i64, ptr %at.wanted.axes
  %at.bytes = getelementptr i64, ptr %item, i64 4
  %bytes = load i64, ptr %at.bytes
  %at.is.written = getelementptr i64, ptr %item, i64 5
  %is.written = load i64, ptr %at.is.written
  %axis.first = getelementptr i64, ptr %item, i64 7
  %at.object = getelementptr ptr, ptr %given, i64 %argument
  %object = load ptr, ptr %at.object
  %at.type = getelementptr i8, ptr %object, i64 TYPE
  %type = load ptr, ptr %at.type
  %at.ndarray = getelementptr ptr, ptr @python, i64 14
  %ndarray = load ptr, ptr %at.ndarray
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %fields, label %subclass
subclass:
  %at.packed = getelementptr ptr, ptr @python, i64 15
  %packed = load ptr, ptr %at.packed
  %is.packed = icmp eq ptr %type, %packed
  br i1 %is.packed, label %marked, label %no
marked:
  %at.wanted.mark = getelementptr i64, ptr %item, i64 6
  %wanted.mark = load i64, ptr %at.wanted.mark
  %at.mark = getelementptr i8, ptr %object, i64 SLOT
  %mark = load i64, ptr %at.mark
  %is.any = icmp eq i64 %wanted.mark, 0
  %is.unmarked = icmp eq i64 %mark, 0
  %is.wanted = icmp eq i64 %mark, %wanted.mark
  %is.free = or i1 %is.any, %is.unmarked
  %has.mark = or i1 %is.free, %is.wanted
  br i1 %has.mark, label %fields, label %no
fields:
  %array = getelementptr i8, ptr %object, i64 HEAD
  %data = load i64, ptr %array
  %at.axes = getelementptr i8, ptr %array, i64 8
  %axes = load i32, ptr %at.axes
  %at.shape = getelementptr i8, ptr %array, i64 16
  %shape = load ptr, ptr %at.shape
  %at.dtype = getelementptr i8, ptr %array, i64 40
  %dtype = load ptr, ptr %at.dtype
  %at.flags = getelementptr i8, ptr %array, i64 48
  %flags = load i32, ptr %at.flags
  %flags.wide = zext i32 %flags to i64
  %has = and i64 %flags.wide, %wanted.flags
  %has.flags = icmp eq i64 %has, %wanted.flags
  %has.dtype = icmp eq ptr %dtype, %wanted.dtype
  %axes.wide = zext i32 %axes to i64
  %has.axes = icmp eq i64 %axes.wide, %wanted.axes
  %good = and i1 %has.flags, %has.dtype
  %better = and i1 %good, %has.axes
  br i1 %better, label %axis, label %no
axis:
  %k = phi i64 [ 0, %fields ], [ %k.next, %next ]
  %size = phi i64 [ %bytes, %fields ], [ %size.next, %next ]
  %rule = phi ptr [ %axis.first, %fields ], [ %rule.next, %next ]
  %is.axis = icmp ult i64 %k, %wanted.axes
  br i1 %is.axis, label %compare, label %done
compare:
  %at.extent = getelementptr i64, ptr %shape, i64 %k
  %extent = load i64, ptr %at.extent
  %kind = load i64, ptr %rule
  %at.value = getelementptr i64, ptr %rule, i64 1
  %value = load i64, ptr %at.value
  %is.constant = icmp eq i64 %kind, 0
  br i1 %is.constant, label %equal, label %symbol
symbol:
  %word = getelementptr i64, ptr %block, i64 %value
  %is.binding = icmp eq i64 %kind, 1
  br i1 %is.binding, label %bind, label %bound
bind:
  store i64 %extent, ptr %word
  br label %next
bound:
  %bound.value = load i64, ptr %word
  br label %equal
equal:
  %wanted = phi i64 [ %value, %compare ], [ %bound.value, %bound ]
  %same = icmp eq i64 %extent, %wanted
  br i1 %same, label %next, label %no
next:
  %k.next = add i64 %k, 1
  %size.next = mul i64 %size, %extent
  %rule.next = getelementptr i64, ptr %rule, i64 2
  br label %axis
done:
  %number = add i64 %argument, 5
  %target = getelementptr i64, ptr %block, i64 %number
  store i64 %data, ptr %target
  %end = add i64 %data, %size
  store i64 %data, ptr %span
  %at.end = getelementptr i64, ptr %span, i64 1
  store i64 %end, ptr %at.end
  %at.written = getelementptr i64, ptr %span, i64 2
  store i64 %is.written, ptr %at.written
  ret ptr %rule
no:
  ret ptr null
}
"""

_APART = """\
define internal i1 @are_apart(ptr %spans, i64 %count) #0 {
entry:
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %inner ]
  %is.more = icmp ult i64 %i, %count
  br i1 %is.more, label %begin, label %yes
begin:
  %one = getelementptr { i64, i64, i64 }, ptr %spans, i64 %i
  %low = load i64, ptr %one
  %at.high = getelementptr i64, ptr %one, i64 1
  %high = load i64, ptr %at.high
  %at.written = getelementptr i64, ptr %one, i64 2
  %written = load i64, ptr %at.written
  %i.next = add i64 %i, 1
  br label %inner
inner:
  %j = phi i64 [ %i.next, %begin ], [ %j.next, %compare ]
  %is.left = icmp ult i64 %j, %count
  br i1 %is.left, label %compare, label %outer
compare:
  %other = getelementptr { i64, i64, i64 }, ptr %spans, i64 %j
  %start = load i64, ptr %other
  %at.stop = getelementptr i64, ptr %other, i64 1
  %stop = load i64, ptr %at.stop
  %at.other.written = getelementptr i64, ptr %other, i64 2
  %other.written = load i64, ptr %at.other.written
  %any.written = or i64 %written, %other.written
  %matters = icmp ne i64 %any.written, 0
  %before = icmp ult i64 %low, %stop
  %after = icmp ult i64 %start, %high
  %meets = and i1 %before, %after
  %clash = and i1 %meets, %matters
  %j.next = add i64 %j, 1
  br i1 %clash, label %no, label %inner
yes:
  ret i1 true
no:
  ret i1 false
}
"""

# Whether the number of threads is still what the environment asked for when it was last read.
# Python holds its lock here, so nobody changes the environment meanwhile.
_CONFIGURED = """\
define internal i1 @is_configured() #0 {
entry:
  %threads = load atomic i64, ptr @threads monotonic, align 8
  %is.set = icmp ne i64 %threads, 0
  br i1 %is.set, label %read, label %no
read:
  %found = call ptr @getenv(ptr @variable)
  %is.none = icmp eq ptr %found, null
  br i1 %is.none, label %empty, label %compare
empty:
  %first = load i8, ptr @asked
  %is.empty = icmp eq i8 %first, 0
  ret i1 %is.empty
compare:
  %order = call i32 @strcmp(ptr %found, ptr @asked)
  %is.same = icmp eq i32 %order, 0
  ret i1 %is.same
no:
  ret i1 false
}
"""


def call_text(head: int, slot: int) -> str:
    """The checks, as code.

    Args:
        head: bytes that all objects begin with, the last 8 for their type.
        slot: bytes before the mark of an array that is in a layout.
    """
    text = "\n".join([_STATE, _CALL, _SCALAR, _ARRAY, _APART, _CONFIGURED])
    for name, number in (("TYPE", head - 8), ("HEAD", head), ("SLOT", slot)):
        text = text.replace(name, str(number))
    return text

"""LLVM IR of the checked fast-call entry point.

`call` is the body of a built-in Python function. It accepts NumPy arrays of the exact type, shape,
strides and flags that a plan lists, and Python scalars in range. All other arguments are delegated
to the slow path, which performs the full checks and builds the error messages, so declining an
argument here is not an error.

The memory layout of an array object is part of the NumPy ABI (`PyArrayObject_fields` in
ndarraytypes.h), because macros in compiled extensions depend on it.
`tecomp.codegen.dispatch.fast_call` verifies the layout before this code is used.

A `Plan` encodes the comparisons; its records are defined in `runtime_structs.py`.

An array of type `PackedArray` is accepted if its layout tag is that of the plan or absent, or if
the plan accepts any tag.
"""

from __future__ import annotations

from tecomp.codegen.runtime.array_checks_ir import ARRAY_CHECKS
from tecomp.codegen.runtime.runtime_structs import VARIABLE, runtime_code

_STATE = """\
@python = internal global %Python zeroinitializer, align $ALIGNMENT
@variable = internal constant [$VARIABLE_BYTES x i8] c"$VARIABLE\\00"
@asked = internal global [$ASKED_BYTES x i8] zeroinitializer, align 64

declare ptr @getenv(ptr)
declare i32 @strcmp(ptr, ptr)
"""

_CALL = """\
define internal ptr @call(ptr %self, ptr %given, i64 %count) #0 {
entry:
  %at.get = field Python.PyCapsule_GetPointer, ptr @python
  %get = load ptr, ptr %at.get
  %plan = call ptr %get(ptr %self, ptr null)
  %at.expected = field Plan.arguments, ptr %plan
  %expected = load i64, ptr %at.expected
  %fits = icmp eq i64 %count, %expected
  br i1 %fits, label %start, label %refuse
start:
  %at.words = field Plan.words, ptr %plan
  %at.threads = field Plan.is_parallel, ptr %plan
  %at.scalars = field Plan.scalars, ptr %plan
  %at.arrays = field Plan.arrays, ptr %plan
  %at.sizes = field Plan.sizes, ptr %plan
  %at.steps = field Plan.steps, ptr %plan
  %first = getelementptr %Plan, ptr %plan, i64 1
  %words = load i64, ptr %at.words
  %uses.threads = load i64, ptr %at.threads
  %scalars = load i64, ptr %at.scalars
  %arrays = load i64, ptr %at.arrays
  %sizes = load i64, ptr %at.sizes
  %steps = load i64, ptr %at.steps
  %block = alloca i64, i64 %words, align 64
  %spans = alloca %Span, i64 %arrays, align 64
  call void @llvm.memset.p0.i64(ptr %block, i8 0, i64 $BLOCK_BYTES, i1 false)
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
  %item.next = getelementptr %Scalar, ptr %item, i64 1
  br label %scalar
array:
  %a = phi i64 [ 0, %scalar ], [ %a.next, %array.ok ]
  %place = phi ptr [ %item, %scalar ], [ %place.next, %array.ok ]
  %is.array = icmp ult i64 %a, %arrays
  br i1 %is.array, label %array.check, label %size
array.check:
  %span = getelementptr %Span, ptr %spans, i64 %a
  %place.next = call ptr @take_array(ptr %place, ptr %given, ptr %block, ptr %span)
  %array.fits = icmp ne ptr %place.next, null
  br i1 %array.fits, label %array.ok, label %refuse
array.ok:
  %a.next = add i64 %a, 1
  br label %array
size:
  %s = phi i64 [ 0, %array ], [ %s.next, %size.ok ]
  %bounds = phi ptr [ %place, %array ], [ %bounds.next, %size.ok ]
  %is.size = icmp ult i64 %s, %sizes
  br i1 %is.size, label %size.check, label %step
size.check:
  %size.word = load i64, ptr %bounds
  %at.size = getelementptr i64, ptr %block, i64 %size.word
  %size.value = load i64, ptr %at.size
  %at.lowest = field Size.lowest, ptr %bounds
  %lowest = load i64, ptr %at.lowest
  %at.highest = field Size.highest, ptr %bounds
  %highest = load i64, ptr %at.highest
  %at.divisor = field Size.divisor, ptr %bounds
  %divisor = load i64, ptr %at.divisor
  %not.below = icmp sge i64 %size.value, %lowest
  %not.above = icmp sle i64 %size.value, %highest
  %rest = srem i64 %size.value, %divisor
  %is.multiple = icmp eq i64 %rest, 0
  %is.between = and i1 %not.below, %not.above
  %is.admitted = and i1 %is.between, %is.multiple
  br i1 %is.admitted, label %size.ok, label %refuse
size.ok:
  %s.next = add i64 %s, 1
  %bounds.next = getelementptr %Size, ptr %bounds, i64 1
  br label %size
step:
  %t = phi i64 [ 0, %size ], [ %t.next, %step.ok ]
  %operation = phi ptr [ %bounds, %size ], [ %operation.next, %step.ok ]
  %is.step = icmp ult i64 %t, %steps
  br i1 %is.step, label %step.check, label %overlap
step.check:
  %step.fits = call i1 @take_step(ptr %operation, ptr %block)
  br i1 %step.fits, label %step.ok, label %refuse
step.ok:
  %t.next = add i64 %t, 1
  %operation.next = getelementptr %Step, ptr %operation, i64 1
  br label %step
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
  %at.save = field Python.PyEval_SaveThread, ptr @python
  %save = load ptr, ptr %at.save
  %at.restore = field Python.PyEval_RestoreThread, ptr @python
  %restore = load ptr, ptr %at.restore
  %code = load ptr, ptr %plan
  %state = call ptr %save()
  %status = call i32 @run(ptr %code, ptr %block)
  call void %restore(ptr %state)
  %is.failure = icmp ne i32 %status, 0
  %at.none = field Python.None, ptr @python
  br i1 %is.failure, label %failure, label %answer
failure:
  %at.bytes = field Python.PyBytes_FromStringAndSize, ptr @python
  %bytes = load ptr, ptr %at.bytes
  %record = field Block.failure, ptr %block
  %copy = call ptr %bytes(ptr %record, i64 $FAILURE_BYTES)
  ret ptr %copy
refuse:
  %at.false = field Python.False, ptr @python
  br label %answer
answer:
  %at.result = phi ptr [ %at.none, %go ], [ %at.false, %refuse ]
  %result = load ptr, ptr %at.result
  %at.keep = field Python.Py_IncRef, ptr @python
  %keep = load ptr, ptr %at.keep
  call void %keep(ptr %result)
  ret ptr %result
}
"""

_SCALAR = """\
define internal i1 @take_scalar(ptr %item, ptr %given, ptr %block) #0 {
entry:
  %argument = load i64, ptr %item
  %at.kind = field Scalar.kind, ptr %item
  %kind = load i64, ptr %at.kind
  %at.object = getelementptr ptr, ptr %given, i64 %argument
  %object = load ptr, ptr %at.object
  %at.type = getelementptr i8, ptr %object, i64 $TYPE
  %type = load ptr, ptr %at.type
  %number = add i64 %argument, $FIRST_ARGUMENT_WORD
  %word = getelementptr i64, ptr %block, i64 %number
  switch i64 %kind, label %bool [ i64 $INTEGER, label %integer
                                  i64 $FLOAT32, label %float
                                  i64 $FLOAT64, label %float ]
integer:
  %at.int = field Python.int, ptr @python
  %int = load ptr, ptr %at.int
  %is.int = icmp eq ptr %type, %int
  br i1 %is.int, label %convert, label %no
convert:
  %at.as.long = field Python.PyLong_AsLongLong, ptr @python
  %as.long = load ptr, ptr %at.as.long
  %value = call i64 %as.long(ptr %object)
  %is.odd = icmp eq i64 %value, -1
  br i1 %is.odd, label %asked, label %range
asked:
  %at.occurred = field Python.PyErr_Occurred, ptr @python
  %occurred = load ptr, ptr %at.occurred
  %error = call ptr %occurred()
  %is.error = icmp ne ptr %error, null
  br i1 %is.error, label %clear, label %range
clear:
  %at.clear = field Python.PyErr_Clear, ptr @python
  %forget = load ptr, ptr %at.clear
  call void %forget()
  br label %no
range:
  %at.low = field Scalar.lowest, ptr %item
  %low = load i64, ptr %at.low
  %at.high = field Scalar.highest, ptr %item
  %high = load i64, ptr %at.high
  %not.low = icmp sge i64 %value, %low
  %not.high = icmp sle i64 %value, %high
  %fits = and i1 %not.low, %not.high
  store i64 %value, ptr %word
  ret i1 %fits
float:
  %at.float = field Python.float, ptr @python
  %float.type = load ptr, ptr %at.float
  %is.float = icmp eq ptr %type, %float.type
  br i1 %is.float, label %real, label %no
real:
  %at.as.double = field Python.PyFloat_AsDouble, ptr @python
  %as.double = load ptr, ptr %at.as.double
  %double = call double %as.double(ptr %object)
  %is.single = icmp eq i64 %kind, $FLOAT32
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
  %at.false = field Python.False, ptr @python
  %false.object = load ptr, ptr %at.false
  %at.true = field Python.True, ptr @python
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

# Returns false if the words of SAME differ, and if there is no value: after an overflow, or for a
# divisor that is not positive.
_STEP = """\
declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)
declare { i64, i1 } @llvm.ssub.with.overflow.i64(i64, i64)
declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)

define internal i1 @take_step(ptr %step, ptr %block) #0 {
entry:
  %operation = load i64, ptr %step
  %at.target = field Step.target, ptr %step
  %target = load i64, ptr %at.target
  %word = getelementptr i64, ptr %block, i64 %target
  %at.left = field Step.left, ptr %step
  %left = load i64, ptr %at.left
  %is.constant = icmp eq i64 %operation, $CONSTANT
  br i1 %is.constant, label %constant, label %operands
constant:
  store i64 %left, ptr %word
  ret i1 true
operands:
  %at.right = field Step.right, ptr %step
  %right = load i64, ptr %at.right
  %at.a = getelementptr i64, ptr %block, i64 %left
  %a = load i64, ptr %at.a
  %at.b = getelementptr i64, ptr %block, i64 %right
  %b = load i64, ptr %at.b
  switch i64 %operation, label %same [ i64 $ADD, label %add
                                       i64 $SUBTRACT, label %subtract
                                       i64 $MULTIPLY, label %multiply
                                       i64 $DIVIDE, label %division
                                       i64 $REMAINDER, label %division
                                       i64 $MINIMUM, label %minimum
                                       i64 $MAXIMUM, label %maximum ]
same:
  %is.same = icmp eq i64 %a, %b
  ret i1 %is.same
add:
  %sum = call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %a, i64 %b)
  br label %overflow
subtract:
  %difference = call { i64, i1 } @llvm.ssub.with.overflow.i64(i64 %a, i64 %b)
  br label %overflow
multiply:
  %product = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %a, i64 %b)
  br label %overflow
overflow:
  %pair = phi { i64, i1 } [ %sum, %add ], [ %difference, %subtract ], [ %product, %multiply ]
  %value = extractvalue { i64, i1 } %pair, 0
  %is.over = extractvalue { i64, i1 } %pair, 1
  br i1 %is.over, label %no, label %done
division:
  %is.positive = icmp sgt i64 %b, 0
  br i1 %is.positive, label %divide, label %no
divide:
  %quotient = sdiv i64 %a, %b
  %rest = srem i64 %a, %b
  %is.below = icmp slt i64 %rest, 0
  %borrow = sext i1 %is.below to i64
  %floor = add i64 %quotient, %borrow
  %refund = select i1 %is.below, i64 %b, i64 0
  %remainder = add i64 %rest, %refund
  %is.quotient = icmp eq i64 %operation, $DIVIDE
  %divided = select i1 %is.quotient, i64 %floor, i64 %remainder
  br label %done
minimum:
  %least = call i64 @llvm.smin.i64(i64 %a, i64 %b)
  br label %done
maximum:
  %most = call i64 @llvm.smax.i64(i64 %a, i64 %b)
  br label %done
done:
  %result = phi i64 [ %value, %overflow ], [ %divided, %divide ], [ %least, %minimum ],
                    [ %most, %maximum ]
  store i64 %result, ptr %word
  ret i1 true
no:
  ret i1 false
}
"""

# Returns whether the environment still has the text of the last thread configuration. The GIL is
# held here, so the environment cannot change concurrently.
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
    """Return the LLVM IR of the fast call.

    Args:
        head: Size of the Python object header in bytes; the last 8 bytes are the type pointer.
        slot: Byte offset of the layout tag in a `PackedArray`.
    """
    parts = [_STATE, _CALL, _SCALAR, *ARRAY_CHECKS, _STEP, _CONFIGURED]
    return runtime_code(
        "\n".join(parts), TYPE=head - 8, HEAD=head, SLOT=slot, VARIABLE=VARIABLE,
        VARIABLE_BYTES=len(VARIABLE) + 1,
    )

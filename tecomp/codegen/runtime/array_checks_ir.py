"""LLVM IR of the checks of arrays in a fast call: type, shape, strides, memory and overlap."""

from __future__ import annotations

# Returns the next position in the plan; null if the array is declined.
_ARRAY = """\
define internal ptr @take_array(ptr %item, ptr %given, ptr %block, ptr %span) #0 {
entry:
  %argument = load i64, ptr %item
  %at.wanted.dtype = field Array.dtype, ptr %item
  %wanted.dtype = load ptr, ptr %at.wanted.dtype
  %at.wanted.flags = field Array.flags, ptr %item
  %wanted.flags = load i64, ptr %at.wanted.flags
  %at.wanted.axes = field Array.axes, ptr %item
  %wanted.axes = load i64, ptr %at.wanted.axes
  %at.bytes = field Array.bytes, ptr %item
  %bytes = load i64, ptr %at.bytes
  %at.is.written = field Array.is_written, ptr %item
  %is.written = load i64, ptr %at.is.written
  %axis.first = getelementptr %Array, ptr %item, i64 1
  %at.object = getelementptr ptr, ptr %given, i64 %argument
  %object = load ptr, ptr %at.object
  %at.type = getelementptr i8, ptr %object, i64 $TYPE
  %type = load ptr, ptr %at.type
  %at.ndarray = field Python.ndarray, ptr @python
  %ndarray = load ptr, ptr %at.ndarray
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %fields, label %subclass
subclass:
  %at.packed = field Python.packed, ptr @python
  %packed = load ptr, ptr %at.packed
  %is.packed = icmp eq ptr %type, %packed
  br i1 %is.packed, label %marked, label %no
marked:
  %at.wanted.mark = field Array.mark, ptr %item
  %wanted.mark = load i64, ptr %at.wanted.mark
  %at.mark = getelementptr i8, ptr %object, i64 $SLOT
  %mark = load i64, ptr %at.mark
  %is.any = icmp eq i64 %wanted.mark, 0
  %is.unmarked = icmp eq i64 %mark, 0
  %is.wanted = icmp eq i64 %mark, %wanted.mark
  %is.free = or i1 %is.any, %is.unmarked
  %has.mark = or i1 %is.free, %is.wanted
  br i1 %has.mark, label %fields, label %no
fields:
  %array = getelementptr i8, ptr %object, i64 $HEAD
  %data = load i64, ptr %array
  %at.axes = field Fields.axes, ptr %array
  %axes = load i32, ptr %at.axes
  %at.shape = field Fields.shape, ptr %array
  %shape = load ptr, ptr %at.shape
  %at.dtype = field Fields.dtype, ptr %array
  %dtype = load ptr, ptr %at.dtype
  %at.flags = field Fields.flags, ptr %array
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
  %at.value = field Axis.value, ptr %rule
  %value = load i64, ptr %at.value
  %is.constant = icmp eq i64 %kind, $EXTENT
  br i1 %is.constant, label %equal, label %symbol
symbol:
  %word = getelementptr i64, ptr %block, i64 %value
  %is.binding = icmp eq i64 %kind, $BINDS
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
  %rule.next = getelementptr %Axis, ptr %rule, i64 1
  br label %axis
done:
  %number = add i64 %argument, $FIRST_ARGUMENT_WORD
  %target = getelementptr i64, ptr %block, i64 %number
  store i64 %data, ptr %target
  %end = add i64 %data, %size
  store i64 %data, ptr %span
  %at.end = field Span.end, ptr %span
  store i64 %end, ptr %at.end
  %at.written = field Span.is_written, ptr %span
  store i64 %is.written, ptr %at.written
  %at.gaps = field Array.has_gaps, ptr %item
  %gaps = load i64, ptr %at.gaps
  %has.gaps = icmp ne i64 %gaps, 0
  br i1 %has.gaps, label %strided, label %yes
strided:
  %at.strides = field Fields.strides, ptr %array
  %strides = load ptr, ptr %at.strides
  %rule.last = call ptr @take_strides(ptr %rule, ptr %shape, ptr %strides, i64 %wanted.axes,
                                      i64 %bytes, ptr %block, ptr %span)
  %has.strides = icmp ne ptr %rule.last, null
  br i1 %has.strides, label %measured, label %no
measured:
  %is.output = icmp ne i64 %is.written, 0
  %is.something = icmp ne i64 %size, 0
  %is.written.to = and i1 %is.output, %is.something
  br i1 %is.written.to, label %places, label %yes.strided
places:
  %are.apart = call i1 @has_places(ptr %shape, ptr %strides, i64 %wanted.axes)
  br i1 %are.apart, label %yes.strided, label %no
yes.strided:
  ret ptr %rule.last
yes:
  ret ptr %rule
no:
  ret ptr null
}
"""

# Returns the next position in the plan; null if the strides differ or are not multiples of the item
# size. The span is that of a contiguous array on entry, and becomes the strided address range.
_STRIDES = """\
define internal ptr @take_strides(ptr %first, ptr %shape, ptr %strides, i64 %axes, i64 %bytes,
                                  ptr %block, ptr %span) #0 {
entry:
  %shift = call i64 @llvm.cttz.i64(i64 %bytes, i1 true)
  %inside = sub i64 %bytes, 1
  br label %axis
axis:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %rule = phi ptr [ %first, %entry ], [ %rule.next, %next ]
  %low = phi i64 [ 0, %entry ], [ %low.next, %next ]
  %high = phi i64 [ %bytes, %entry ], [ %high.next, %next ]
  %is.axis = icmp ult i64 %k, %axes
  br i1 %is.axis, label %compare, label %done
compare:
  %at.extent = getelementptr i64, ptr %shape, i64 %k
  %extent = load i64, ptr %at.extent
  %at.stride = getelementptr i64, ptr %strides, i64 %k
  %stride = load i64, ptr %at.stride
  %odd = and i64 %stride, %inside
  %is.odd = icmp ne i64 %odd, 0
  br i1 %is.odd, label %no, label %whole
whole:
  %step = ashr i64 %stride, %shift
  %kind = load i64, ptr %rule
  %at.value = field Axis.value, ptr %rule
  %value = load i64, ptr %at.value
  %is.constant = icmp eq i64 %kind, $EXTENT
  br i1 %is.constant, label %equal, label %symbol
symbol:
  %word = getelementptr i64, ptr %block, i64 %value
  %is.binding = icmp eq i64 %kind, $BINDS
  br i1 %is.binding, label %bind, label %bound
bind:
  store i64 %step, ptr %word
  br label %next
bound:
  %bound.value = load i64, ptr %word
  br label %equal
equal:
  %wanted = phi i64 [ %value, %whole ], [ %bound.value, %bound ]
  %same = icmp eq i64 %step, %wanted
  %is.short = icmp sle i64 %extent, 1
  %fits = or i1 %same, %is.short
  br i1 %fits, label %next, label %no
next:
  %steps = sub i64 %extent, 1
  %reach = mul i64 %steps, %stride
  %before = call i64 @llvm.smin.i64(i64 %reach, i64 0)
  %after = call i64 @llvm.smax.i64(i64 %reach, i64 0)
  %low.next = add i64 %low, %before
  %high.next = add i64 %high, %after
  %k.next = add i64 %k, 1
  %rule.next = getelementptr %Axis, ptr %rule, i64 1
  br label %axis
done:
  %data = load i64, ptr %span
  %at.end = field Span.end, ptr %span
  %end = load i64, ptr %at.end
  %is.empty = icmp eq i64 %end, %data
  br i1 %is.empty, label %yes, label %around
around:
  %first.byte = add i64 %data, %low
  store i64 %first.byte, ptr %span
  %last.byte = add i64 %data, %high
  store i64 %last.byte, ptr %at.end
  br label %yes
yes:
  ret ptr %rule
no:
  ret ptr null
}

declare i64 @llvm.abs.i64(i64, i1)
"""

# Returns whether the elements of a nonempty array provably do not overlap: each stride exceeds the
# reach of all smaller strides. Arrays without overlap for another reason are declined.
_PLACES = """\
define internal i1 @has_places(ptr %shape, ptr %strides, i64 %axes) #0 {
entry:
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %outer.next ]
  %is.more = icmp ult i64 %i, %axes
  br i1 %is.more, label %begin, label %yes
begin:
  %at.extent = getelementptr i64, ptr %shape, i64 %i
  %extent = load i64, ptr %at.extent
  %at.stride = getelementptr i64, ptr %strides, i64 %i
  %signed = load i64, ptr %at.stride
  %stride = call i64 @llvm.abs.i64(i64 %signed, i1 false)
  br label %inner
inner:
  %j = phi i64 [ 0, %begin ], [ %j.next, %inner.next ]
  %reach = phi i64 [ 0, %begin ], [ %reach.next, %inner.next ]
  %is.left = icmp ult i64 %j, %axes
  br i1 %is.left, label %other, label %decide
other:
  %at.other.extent = getelementptr i64, ptr %shape, i64 %j
  %other.extent = load i64, ptr %at.other.extent
  %at.other.stride = getelementptr i64, ptr %strides, i64 %j
  %other.signed = load i64, ptr %at.other.stride
  %other.stride = call i64 @llvm.abs.i64(i64 %other.signed, i1 false)
  %is.smaller = icmp ult i64 %other.stride, %stride
  %is.same = icmp eq i64 %other.stride, %stride
  %is.later = icmp ugt i64 %j, %i
  %is.inner = and i1 %is.same, %is.later
  %counts = or i1 %is.smaller, %is.inner
  br i1 %counts, label %add, label %inner.next
add:
  %steps = sub i64 %other.extent, 1
  %own = mul i64 %steps, %other.stride
  %more = add i64 %reach, %own
  br label %inner.next
inner.next:
  %reach.next = phi i64 [ %reach, %other ], [ %more, %add ]
  %j.next = add i64 %j, 1
  br label %inner
decide:
  %is.short = icmp sle i64 %extent, 1
  %is.over = icmp ugt i64 %stride, %reach
  %is.apart = or i1 %is.short, %is.over
  br i1 %is.apart, label %outer.next, label %no
outer.next:
  %i.next = add i64 %i, 1
  br label %outer
yes:
  ret i1 true
no:
  ret i1 false
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
  %one = getelementptr %Span, ptr %spans, i64 %i
  %low = load i64, ptr %one
  %at.high = field Span.end, ptr %one
  %high = load i64, ptr %at.high
  %at.written = field Span.is_written, ptr %one
  %written = load i64, ptr %at.written
  %i.next = add i64 %i, 1
  br label %inner
inner:
  %j = phi i64 [ %i.next, %begin ], [ %j.next, %compare ]
  %is.left = icmp ult i64 %j, %count
  br i1 %is.left, label %compare, label %outer
compare:
  %other = getelementptr %Span, ptr %spans, i64 %j
  %start = load i64, ptr %other
  %at.stop = field Span.end, ptr %other
  %stop = load i64, ptr %at.stop
  %at.other.written = field Span.is_written, ptr %other
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

ARRAY_CHECKS = (_ARRAY, _STRIDES, _PLACES, _APART)
"""Functions that the fast call calls for each array."""

"""Arrays as the array-API standard has them: lazy, compiled, with devices and teams."""

from tecomp.array.array import Array as Array
from tecomp.array.functions.creation import arange as arange
from tecomp.array.functions.creation import asarray as asarray
from tecomp.array.functions.creation import empty as empty
from tecomp.array.functions.creation import empty_like as empty_like
from tecomp.array.functions.creation import eye as eye
from tecomp.array.functions.creation import from_dlpack as from_dlpack
from tecomp.array.functions.creation import full as full
from tecomp.array.functions.creation import full_like as full_like
from tecomp.array.functions.creation import linspace as linspace
from tecomp.array.functions.creation import meshgrid as meshgrid
from tecomp.array.functions.creation import ones as ones
from tecomp.array.functions.creation import ones_like as ones_like
from tecomp.array.functions.creation import tril as tril
from tecomp.array.functions.creation import triu as triu
from tecomp.array.functions.creation import zeros as zeros
from tecomp.array.functions.creation import zeros_like as zeros_like

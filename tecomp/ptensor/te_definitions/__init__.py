"""Operations as `te` tensors, one file per group of the RFC."""

from tecomp.ptensor.te_definitions import creation as _creation
from tecomp.ptensor.te_definitions import cumulative as _cumulative
from tecomp.ptensor.te_definitions import linear_algebra as _linear_algebra
from tecomp.ptensor.te_definitions import manipulation as _manipulation
from tecomp.ptensor.te_definitions import reduction as _reduction
from tecomp.ptensor.te_definitions.creation import define as define

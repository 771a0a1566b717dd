"""Operations as `te` tensors, one file per group of the RFC."""

from tecomp.ptensor.te_definitions import creation as _creation  # noqa: F401
from tecomp.ptensor.te_definitions import cumulative as _cumulative  # noqa: F401
from tecomp.ptensor.te_definitions import linear_algebra as _linear_algebra  # noqa: F401
from tecomp.ptensor.te_definitions import manipulation as _manipulation  # noqa: F401
from tecomp.ptensor.te_definitions import reduction as _reduction  # noqa: F401
from tecomp.ptensor.te_definitions.creation import define as define

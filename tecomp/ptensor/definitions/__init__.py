"""Operations as `te` tensors, one file for each group of the document."""

from tecomp.ptensor.definitions import creation as _creation  # noqa: F401  registers
from tecomp.ptensor.definitions import elementwise as _elementwise  # noqa: F401
from tecomp.ptensor.definitions import indexing as _indexing  # noqa: F401
from tecomp.ptensor.definitions import linear_algebra as _linear_algebra  # noqa: F401
from tecomp.ptensor.definitions import manipulation as _manipulation  # noqa: F401
from tecomp.ptensor.definitions import reduction as _reduction  # noqa: F401
from tecomp.ptensor.definitions import running as _running  # noqa: F401
from tecomp.ptensor.definitions import searching as _searching  # noqa: F401
from tecomp.ptensor.definitions.define import define as define

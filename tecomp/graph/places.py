"""Where whole values are: what callers pass, and what goes from one kernel to another."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from tecomp.compute.tensor import Tensor
from tecomp.graph.sizes import plain_layout
from tecomp.layout.descriptions.layout import Layout
from tecomp.machine.descriptor import Target
from tecomp.poly.maps.index_map import IndexMap
from tecomp.schedules.scratchpads.placement import device_of


@dataclass(frozen=True, slots=True)
class Places:
    """Where the values of a program are.

    Attributes:
        target: the machine.
        stored: the layouts of values that are not in the order of NumPy.
        arguments: what the caller passes, which is in the memory of the host.
    """

    target: Target
    stored: Mapping[Tensor, Layout]
    arguments: Container[Tensor]

    def is_outside(self, x: Tensor) -> bool:
        """Whether a value is in the memory of a host that the machine has beside its own."""
        return self.target.core is None and x in self.arguments

    def of(self, x: Tensor) -> Layout | IndexMap | None:
        """Where a value is: what the caller passes in the memory that its layout names.

        None where that goes without saying: on a processor, in the order of NumPy. A machine that
        is run here keeps values in the types of the host, in layouts of its own where nothing is
        said.
        """
        if x in self.stored:
            return self._as_stored(x, self.stored[x])
        if self.target.core is not None:
            return None
        return plain_layout(x) if self.is_outside(x) else plain_layout(x).index_map

    def _as_stored(self, x: Tensor, layout: Layout) -> Layout | IndexMap:
        if layout.pad_value is None:
            return layout.index_map
        # Values are in the types of the host, those in padding too.
        return Layout.of(
            layout.shape, x.dtype, layout.index_map, pad_value=layout.pad_value,
            memory=device_of(self.target),
        )

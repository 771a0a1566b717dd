"""Schedules under TVM's names; all of them call the automatic scheduler for the target."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp import te
from tecomp.schedules import auto


def default_schedule(
    outs: te.Tensor | Sequence[te.Tensor], target: str = "cpu"
) -> te.Schedule:
    """Return the schedule that `tecomp.schedules.auto` builds for the results.

    >>> from tecomp import topi
    >>> B = topi.exp(te.placeholder((64, 64), name="A"))
    >>> B in [stage.op.output(0) for stage in default_schedule(B).stages]
    True
    """
    schedule: te.Schedule = auto(list(outs) if isinstance(outs, list | tuple) else outs, target)
    return schedule


schedule_injective = default_schedule
schedule_extern = default_schedule
schedule_reduce = default_schedule
schedule_pool = default_schedule
schedule_adaptive_pool = default_schedule
schedule_softmax = default_schedule
schedule_dense = default_schedule
schedule_batch_matmul = default_schedule
schedule_conv2d_nchw = default_schedule
schedule_conv2d_nhwc = default_schedule
schedule_depthwise_conv2d_nchw = default_schedule
schedule_depthwise_conv2d_nhwc = default_schedule

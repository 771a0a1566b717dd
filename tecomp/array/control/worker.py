"""The processes that do what the one with the script sends them."""

from __future__ import annotations

import time
from typing import Any

from tecomp.array.control.messages import (
    Call,
    End,
    Failed,
    Handle,
    Message,
    decoded,
    made_by,
    unpacked,
)
from tecomp.array.control.together import FUNCTIONS
from tecomp.array.graph.shared import Shared
from tecomp.dist.runtime.library import mpi

_BUSY = 0.01
"""Seconds in which the next message is waited for without a pause."""

_PAUSE = 0.0005
_LONGEST = 0.01

_GRACE = 2
"""Seconds in which the process with the script fails too, if it does."""


def work(comm: Any) -> None:
    """Do what the first process of a communicator sends, to its end.

    Raises:
        Exception: what a call raises here, and not on the process with the script.
    """
    arrays: dict[Handle, Shared] = {}
    while True:
        message = _received(comm)
        if isinstance(message, End):
            return
        assert isinstance(message, Call), "what failed is told behind the call"
        try:
            _do(message, arrays)
        except Exception:
            answer = _received(comm, _GRACE)
            if answer != Failed(message.number):
                raise


def _do(call: Call, arrays: dict[Handle, Shared]) -> None:
    for handle in call.free:
        del arrays[handle]
    result = FUNCTIONS[call.name](*decoded(call.arguments, arrays.__getitem__))
    for k, node in enumerate(made_by(result)):
        arrays[call.number, k] = node


def _received(comm: Any, most: float | None = None) -> Message | None:
    """The next message; None if none comes in so many seconds."""
    status = mpi().Status()
    begin = time.monotonic()
    pause = _PAUSE
    while not comm.Iprobe(0, status=status):
        waited = time.monotonic() - begin
        if most is not None and waited > most:
            return None
        if waited > _BUSY:
            time.sleep(pause)
            pause = min(pause * 1.2, _LONGEST)
    data = bytearray(status.Get_count(mpi().BYTE))
    comm.Recv([data, mpi().BYTE], 0)
    return unpacked(data)

"""Whether one process runs the script alone, so that no other makes the calls that it writes."""

from __future__ import annotations

from tecomp.errors import TeamError


class Alone:
    """A process that runs a script for all others, while none of its calls is sent to them.

    Attributes:
        waits: whether the others wait for what this process sends. It is no longer so while all of
            them do what was sent.
    """

    def __init__(self) -> None:
        self.waits = False

    def __enter__(self) -> None:
        self.waits = False

    def __exit__(self, *_: object) -> None:
        self.waits = True

    def check(self, what: str) -> None:
        """Refuse what all processes have to call, where one runs the script alone.

        Raises:
            TeamError: it does.
        """
        if self.waits:
            raise TeamError(
                f"{what}: one process runs this script, and the others do only what functions of "
                "tecomp.array send them; use these, or start without --controller"
            )


alone = Alone()

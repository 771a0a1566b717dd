"""Print how the program was started; hang or fail on request."""

from __future__ import annotations

import os
import sys
import time

import numpy as np

from tecomp import dist

team = dist.world()
said = dist.allgather(team, dist.allreduce(team, np.array([team.rank])))
if team.rank == 0:
    print(team, said.tolist(), sys.argv[1:], os.environ["TECOMP_NUM_THREADS"], flush=True)
if "hang" in sys.argv:
    time.sleep(60)
if "fail" in sys.argv:
    sys.exit(3 if team.rank == 1 else 0)

"""Runtime of distributed tensors on MPI: teams, messages, collectives and local arrays."""

"""Processes that hold parts of arrays: teams, messages and distributed tensors, on MPI."""

"""Partitions of arrays over ranks, and the messages of redistributions; independent of MPI."""

"""Layouts with names: sticks, shards, tiles and blocks, each one index map."""

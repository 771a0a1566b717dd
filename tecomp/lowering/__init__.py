"""From a schedule to flat IR: loop nests, then one pass a file."""

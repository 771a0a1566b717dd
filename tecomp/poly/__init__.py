"""Integer sets for domains, accesses and layouts; the only package that imports isl."""

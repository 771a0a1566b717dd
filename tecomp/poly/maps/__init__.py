"""Index maps and their analysis: extents, injectivity, inverse, padding."""

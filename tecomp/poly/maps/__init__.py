"""Index maps, and the questions about them: extents, injectivity, inverse, padding."""

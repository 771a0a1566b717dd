"""The stages of a schedule before there are loops: definitions, and what they read."""

"""The graph that arrays record: nodes, what of them is pending, and when it is computed."""

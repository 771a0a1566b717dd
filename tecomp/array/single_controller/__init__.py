"""Single-controller execution: one process runs the script and sends operations to the others."""

"""The operations, one file for each group of the document."""

"""Operation classes, one file per group of the RFC."""

"""Tools for target packages: package skeleton, conformance checks and target intrinsics."""

"""What a program costs on a machine: counted, not run."""

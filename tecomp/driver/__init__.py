"""The compiler driver: build callable kernels from schedules, and compile programs."""

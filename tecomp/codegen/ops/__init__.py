"""Emission of operators: arithmetic, conversions, math calls and vectors of any lane count."""

"""Decisions about when and where things run and live: primitives on a frozen state."""

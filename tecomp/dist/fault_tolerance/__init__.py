"""Loops that go on when processes are lost: copies on neighbours, and what is rebuilt from them."""

"""Checks of a driver library: each is one function, run in a child program against any libcuda (see kinds.py)."""

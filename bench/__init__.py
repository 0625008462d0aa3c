"""Benchmarks: they report, they judge nothing. Each is run as ``python -m bench.NAME``."""

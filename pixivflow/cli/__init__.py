"""The command line: thin commands over the services, and the only place that starts actors."""

from pixivflow.cli.root import main

__all__ = ["main"]

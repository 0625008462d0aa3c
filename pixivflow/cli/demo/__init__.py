"""`pixivflow demo`: the real daemon against local look-alikes, killed in the middle, judged at the end."""

from pixivflow.cli.demo.command import demo_command

__all__ = ["demo_command"]

"""What every command starts from: which configuration file, and what is needed of it."""

import os

import click

from pixivflow.cli.config_commands import CHECKS, config_path
from pixivflow.config import BaseConfig, Config, load_base, load_config


def full_config(ctx: click.Context) -> Config:
    """Load the whole configuration. Raises `ConfigRefused` with everything that is wrong."""
    return load_config(config_path(ctx), os.environ, checks=CHECKS)


def base_config(ctx: click.Context) -> BaseConfig:
    """Load the part that talking to the daemon needs; no secret is read."""
    return load_base(config_path(ctx), os.environ)

"""The configuration file: found, read, checked as a whole, resolved to one immutable `Config`."""

from pixivflow.config.load import Checks, check_config, load_base, load_config, load_login
from pixivflow.config.locate import ConfigNotFound, ConfigUnreadable, default_state_dir, locate_config
from pixivflow.config.model import BaseConfig, Config, FolderRoute, LoginConfig, MultipartRoute, Route
from pixivflow.config.problems import ConfigProblem, ConfigRefused
from pixivflow.config.resolve import cell_spec, redirected

__all__ = [
    "BaseConfig",
    "Checks",
    "Config",
    "ConfigNotFound",
    "ConfigProblem",
    "ConfigRefused",
    "ConfigUnreadable",
    "FolderRoute",
    "LoginConfig",
    "MultipartRoute",
    "Route",
    "cell_spec",
    "check_config",
    "default_state_dir",
    "load_base",
    "load_config",
    "load_login",
    "locate_config",
    "redirected",
]

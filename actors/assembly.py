"""From the configuration to the settings of each service."""

import hashlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from actors.collecting import RouteTerms
from actors.outbox import LaneTerms, OpenSender
from actors.settlement import RetryTerms
from actors.sweeper import Retention
from pixivflow.clock import Wall
from pixivflow.config.model import Config, FolderRoute, MultipartRoute, Route
from pixivflow.delivery.senders import open_sender
from pixivflow.delivery.settings import FolderSettings, MultipartSettings, RouteSettings
from pixivflow.ledger.files import Root
from pixivflow.pixiv.settings import PixivSettings


def roots_of(config: Config) -> dict[Root, Path]:
    """The folders that paths in the ledger are relative to."""
    return {"download": config.storage.download_dir, "state": config.storage.state_dir}


def pixiv_settings(config: Config) -> PixivSettings:
    """How Pixiv is reached."""
    section = config.pixiv
    return PixivSettings(
        api_url=section.api_url,
        oauth_url=section.oauth_url,
        image_url=section.image_url,
        proxy=section.proxy,
        image_proxy=section.image_proxy,
        timeout_s=section.timeout_s,
        pace_s=section.pace_s,
        language=section.language,
    )


def route_settings(name: str, route: Route) -> RouteSettings:
    """How a route sends."""
    match route:
        case MultipartRoute():
            return MultipartSettings(
                name=name,
                url=route.url,
                headers=route.headers,
                file_field=route.file_field,
                array_format=route.array_format,
                method=route.method,
                readiness_url=route.readiness_url,
                proxy=route.proxy,
                timeout_s=route.timeout_s,
            )
        case FolderRoute():
            return FolderSettings(name=name, path=route.path)


def route_terms(config: Config) -> Mapping[str, RouteTerms]:
    """What new intents of each route are given."""
    return {
        name: RouteTerms(
            route_settings(name, route),
            route.fields if isinstance(route, MultipartRoute) else {},
            route.max_attempts,
            route.expire_after_s,
        )
        for name, route in config.routes.items()
    }


def lanes(config: Config, wall: Wall) -> Mapping[str, tuple[LaneTerms, OpenSender]]:
    """A lane for each route, with the way to open its sender."""
    return {
        name: (
            LaneTerms(
                route=name,
                facts=hashlib.sha256(msgspec.json.encode(route, enc_hook=str)).hexdigest(),
                retry=RetryTerms(route.retry_base_s, route.retry_cap_s),
                timeout_s=route.timeout_s,
                min_interval_s=route.min_interval_s,
                unready=_unready(route),
            ),
            partial(open_sender, route_settings(name, route), roots_of(config), wall=wall),
        )
        for name, route in config.routes.items()
    }


def _unready(route: Route) -> str:
    if isinstance(route, FolderRoute):
        return f"the folder {route.path} can't be written; check its owner, mode and disk"
    asked = urlsplit(route.readiness_url or route.url)
    place = f"{asked.scheme}://{asked.netloc.rpartition('@')[2]}{asked.path}"  # neither password nor query
    return f"{place} (readiness_url) does not say that it is ready; is the receiver running?"


def retention(config: Config) -> Retention:
    """How long finished things are kept."""
    section = config.retention
    return Retention(section.payloads_s, section.events_s, section.failed_cache_s)

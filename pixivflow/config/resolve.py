"""What the rest of the program derives from a configuration."""

from pathlib import Path

from msgspec.structs import replace

from pixivflow.config.model import Config, MultipartRoute, Route, TargetSection
from protocol.specs import CellSpec, Filters, Source
from protocol.works import WorkKind

SIMULATED_PACE_S = 0.05


def cell_spec(config: Config, target_id: str, *, timeout_s: float | None = None) -> CellSpec:
    """Return the resolved target as a cell keeps it; ``timeout_s`` is that of the schedule.

    Raises KeyError for an unknown target.
    """
    target = config.target(target_id)
    spec = CellSpec(
        target_id=target.id,
        account=target.account or "main",
        source=_source(target),
        filters=_filters(target),
        kind=WorkKind(target.kind),
        scan_limit=target.scan_limit,
        storage=target.storage,
        path=target.path or config.storage.path,
        names=config.storage.names,
        sidecar=target.sidecar,
        routes=target.routes,
        fields=target.fields,
        retry_for_s=config.scheduler.retry_for_s,
    )
    return spec if timeout_s is None else replace(spec, timeout_s=timeout_s)


def redirected(
    config: Config,
    *,
    api_url: str,
    oauth_url: str,
    image_url: str,
    receiver_url: str,
    refresh_token: str,
    folder: Path,
) -> Config:
    """Return the same plan with every address, credential and directory replaced.

    A run of it touches nothing real.
    """
    pixiv = replace(
        config.pixiv,
        api_url=api_url,
        oauth_url=oauth_url,
        image_url=image_url,
        proxy=None,
        image_proxy=None,
        pace_s=SIMULATED_PACE_S,
    )
    storage = replace(config.storage, state_dir=folder / "state", download_dir=folder / "downloads")
    return replace(
        config,
        pixiv=pixiv,
        storage=storage,
        accounts={
            name: replace(account, refresh_token=refresh_token) for name, account in config.accounts.items()
        },
        routes={
            name: _redirected_route(route, receiver_url, folder / "routes" / name)
            for name, route in config.routes.items()
        },
        control=replace(config.control, group=None),
    )


def _source(target: TargetSection) -> Source:
    """Return what belongs to the target's mode; keys that came from ``[defaults]`` for other modes are left out."""
    match target.mode:
        case "search":
            return Source(
                "search", tags=target.tags, tags_match=target.tags_match, match=target.match, sort=target.sort
            )
        case "ranking":
            return Source("ranking", ranking=target.ranking, ranking_date=target.ranking_date)
        case "artist":
            return Source("artist", artist_id=target.artist_id)
        case "work":
            return Source("work", work=target.work)


def _filters(target: TargetSection) -> Filters:
    return Filters(
        exclude_tags=target.exclude_tags,
        min_bookmarks=target.min_bookmarks,
        max_bookmarks=target.max_bookmarks,
        min_views=target.min_views,
        ai=target.ai,
        r18=target.r18,
        r18g=target.r18g,
        min_pages=target.min_pages,
        max_pages=target.max_pages,
        since=target.since,
        until=target.until,
    )


def _redirected_route(route: Route, receiver_url: str, folder: Path) -> Route:
    if isinstance(route, MultipartRoute):
        receiver = receiver_url.rstrip("/")
        return replace(
            route,
            url=f"{receiver}/submissions",
            readiness_url=f"{receiver}/ready" if route.readiness_url else None,
            headers={},
            proxy=None,
        )
    return replace(route, path=folder)

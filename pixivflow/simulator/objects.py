"""Pixiv's JSON objects, made from the catalogue."""

from typing import Any

from pixivflow.simulator import paths
from pixivflow.simulator.catalogue import JST, SimUser, SimWork
from pixivflow.simulator.vocabulary import TRANSLATIONS

Json = dict[str, Any]

_WORKSPACE = (
    "pc", "monitor", "tool", "scanner", "tablet", "mouse", "printer", "desktop", "music", "desk", "chair",
    "comment",
)  # fmt: skip


def user_object(base: str, user: SimUser) -> Json:
    """Give the author as lists and works carry them."""
    return {
        "id": user.id,
        "name": user.name,
        "account": user.account,
        "profile_image_urls": {"medium": f"{base}/common/images/no_profile.png"},
        "is_followed": user.followed is not None,
    }


def illust_object(base: str, work: SimWork, *, detail: bool = False) -> Json:
    """Give a work as a list or its detail shows it; a stub when it is withheld."""
    if work.stub is not None:
        return _stub(base, work)
    shown = {
        **_head(work),
        "image_urls": paths.thumbnails(base, work, 0),
        "caption": work.caption if detail or work.caption_in_lists else "",
        "restrict": work.restrict,
        "user": user_object(base, work.author),
        "tags": [{"name": tag, "translated_name": TRANSLATIONS.get(tag)} for tag in work.tags],
        "tools": [],
        "create_date": work.created.astimezone(JST).isoformat(),
        "page_count": work.page_count,
        "width": work.width,
        "height": work.height,
        "sanity_level": 6 if work.x_restrict else 2,
        "x_restrict": work.x_restrict,
        "series": None,
        **_pages(base, work),
        "total_view": work.views,
        "total_bookmarks": work.bookmarks,
        "is_bookmarked": work.bookmark_id is not None,
        "visible": True,
        "is_muted": work.muted,
        "illust_ai_type": work.ai_type,
        "illust_book_style": 0,
    }
    return shown | {"total_comments": work.comments, "comment_access_control": 0} if detail else shown


def _head(work: SimWork) -> Json:
    return {"id": work.id, "title": work.title, "type": work.type}


def _pages(base: str, work: SimWork) -> Json:
    if work.page_count == 1:
        single = {"original_image_url": paths.original(base, work, 0)}
        return {"meta_single_page": single, "meta_pages": []}
    pages = [
        {"image_urls": {**paths.thumbnails(base, work, page), "original": paths.original(base, work, page)}}
        for page in range(work.page_count)
    ]
    return {"meta_single_page": {}, "meta_pages": pages}


def _stub(base: str, work: SimWork) -> Json:
    url = paths.placeholder(base, work.stub or "unknown")
    nobody = {"id": 0, "name": "", "account": ""}
    author = {"id": work.author.id, "name": work.author.name, "account": work.author.account}
    avatar = {"profile_image_urls": {"medium": f"{base}/common/images/no_profile.png"}}
    return {
        "id": work.id,
        "title": "",
        "type": "illust",
        "image_urls": {"square_medium": url, "medium": url, "large": url},
        "caption": "",
        "restrict": 1 if work.stub == "mypixiv" else 0,
        "user": (nobody if work.stub == "unknown" else author) | avatar,
        "tags": [],
        "tools": [],
        "create_date": work.created.astimezone(JST).isoformat(),
        "page_count": 1,
        "width": 100,
        "height": 100,
        "sanity_level": 0,
        "x_restrict": 0,
        "series": None,
        "meta_single_page": {"original_image_url": url},
        "meta_pages": [],
        "total_view": 0,
        "total_bookmarks": 0,
        "is_bookmarked": work.bookmark_id is not None,
        "visible": False,
        "is_muted": False,
        "illust_ai_type": 0,
        "illust_book_style": 0,
    }


def user_detail(base: str, user: SimUser, works: int, manga: int) -> Json:
    """Give the whole answer of an author's detail."""
    public = ("gender", "region", "birth_day", "job")
    return {
        "user": user_object(base, user) | {"comment": user.comment, "is_access_blocking_user": False},
        "profile": _profile(works, manga),
        "profile_publicity": dict.fromkeys(public, "public") | {"birth_year": "private", "pawoo": True},
        "workspace": dict.fromkeys(_WORKSPACE, "") | {"workspace_image_url": None},
    }


def _profile(works: int, manga: int) -> Json:
    texts = ("gender", "birth", "birth_day", "region", "country_code", "job", "twitter_account")
    numbers = ("birth_year", "address_id", "job_id", "total_novels", "total_illust_bookmarks_public")
    return {
        **dict.fromkeys(texts, ""),
        **dict.fromkeys(numbers, 0),
        **dict.fromkeys(("webpage", "background_image_url", "twitter_url", "pawoo_url")),
        "total_follow_users": 42,
        "total_mypixiv_users": 3,
        "total_illusts": works,
        "total_manga": manga,
        "total_illust_series": 0,
        "total_novel_series": 0,
        "is_premium": False,
        "is_using_custom_profile_image": False,
    }


def ugoira_metadata(base: str, work: SimWork) -> Json:
    """Zip address and frame delays (milliseconds) of an animation."""
    frames = [{"file": f"{number:06d}.jpg", "delay": delay} for number, delay in enumerate(work.frame_delays)]
    return {"ugoira_metadata": {"zip_urls": {"medium": paths.animation(base, work)}, "frames": frames}}

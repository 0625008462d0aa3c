import io

import pytest
from PIL import Image

from pixivflow.simulator.gallery import Gallery
from pixivflow.simulator.paths import original, parse
from pixivflow.simulator.pictures import Picture, render

SMALL = Picture(190000001, 0, 160, 120, "png", lighthouse=True)


@pytest.mark.parametrize("form", ["jpg", "png", "gif"])
def test_a_picture_is_always_drawn_the_same(form):
    picture = Picture(1, 2, 90, 60, form)

    assert render(picture) == render(picture)


def test_works_pages_and_frames_look_different():
    pictures = [SMALL, Picture(190000002, 0, 160, 120, "png"), Picture(190000001, 1, 160, 120, "png")]
    pictures.append(Picture(190000001, 0, 160, 120, "png", lighthouse=True, phase=0.5))

    assert len({render(picture) for picture in pictures}) == 4


@pytest.mark.parametrize("size", [(1, 1), (40, 400), (400, 40)])
def test_odd_sizes_can_be_drawn(size):
    data = render(Picture(5, 0, *size, "png", lighthouse=True))

    assert Image.open(io.BytesIO(data)).size == size


@pytest.mark.parametrize("form", ["jpg", "png", "gif"])
@pytest.mark.parametrize("extra", [1, 70_000])
def test_padding_reaches_the_length_and_changes_no_pixel(form, extra):
    plain = render(Picture(5, 0, 64, 48, form))
    long = render(Picture(5, 0, 64, 48, form, min_bytes=len(plain) + extra))

    assert len(long) >= len(plain) + extra
    assert (
        Image.open(io.BytesIO(long)).convert("RGB").tobytes()
        == Image.open(io.BytesIO(plain)).convert("RGB").tobytes()
    )


async def test_a_full_gallery_draws_again_and_gives_the_same(driver):
    catalogue = driver.simulator.catalogue
    gallery = Gallery(min_bytes=0, kept_bytes=1)
    work = catalogue.make_work(width=64, height=48)
    path = parse(original("", work, 0))

    assert await gallery.picture(path, work) == await gallery.picture(path, work)

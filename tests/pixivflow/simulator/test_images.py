import io
import zipfile

import httpx
import pytest
from PIL import Image

from pixivflow.simulator.server import SimulatorOptions

TYPES = {"jpg": ("image/jpeg", "JPEG"), "png": ("image/png", "PNG"), "gif": ("image/gif", "GIF")}


async def add(driver, **fields):
    work = driver.simulator.catalogue.make_work(width=120, height=90, **fields)
    driver.simulator.catalogue.add(work)
    illust = (await driver.get("/v1/illust/detail", illust_id=work.id)).json()["illust"]
    return work, illust


def original(illust):
    return illust["meta_single_page"]["original_image_url"]


@pytest.mark.parametrize("extension", TYPES)
async def test_originals_are_real_pictures_of_the_stated_size(driver, extension):
    _, illust = await add(driver, extensions=(extension,))
    answer = await driver.image(original(illust))
    picture = Image.open(io.BytesIO(answer.content))
    picture.load()

    assert (answer.headers["content-type"], picture.format) == TYPES[extension]
    assert picture.size == (120, 90)
    assert int(answer.headers["content-length"]) == len(answer.content)


async def test_the_pages_of_a_work_differ(driver):
    _, illust = await add(driver, page_count=2, extensions=("jpg", "png"))
    urls = [page["image_urls"]["original"] for page in illust["meta_pages"]]
    pages = [await driver.image(url) for url in urls]

    assert [page.headers["content-type"] for page in pages] == ["image/jpeg", "image/png"]
    assert pages[0].content != pages[1].content


async def test_every_address_of_a_work_answers(driver):
    _, illust = await add(driver, hashed=True)
    for url in (*illust["image_urls"].values(), original(illust)):
        assert (await driver.image(url)).status_code == 200


@pytest.mark.parametrize("referer", ["https://www.pixiv.net/artworks/1", "https://app-api.pixiv.net/"])
async def test_pixivs_own_pages_may_refer(driver, referer):
    _, illust = await add(driver)

    assert (await driver.image(original(illust), Referer=referer)).status_code == 200


@pytest.mark.parametrize("headers", [{}, {"Referer": "https://example.invalid/"}])
async def test_others_are_forbidden(driver, headers):
    _, illust = await add(driver)

    assert (await driver.http.get(original(illust), headers=headers)).status_code == 403


async def test_a_range_is_answered_in_part(driver):
    _, illust = await add(driver)
    whole = (await driver.image(original(illust))).content
    answer = await driver.image(original(illust), Range="bytes=100-")

    assert answer.status_code == 206
    assert answer.content == whole[100:]
    assert answer.headers["content-range"] == f"bytes 100-{len(whole) - 1}/{len(whole)}"


@pytest.mark.parametrize(("asked", "slice_"), [("bytes=0-9", slice(0, 10)), ("bytes=-5", slice(-5, None))])
async def test_ranges_may_have_either_end(driver, asked, slice_):
    _, illust = await add(driver)
    whole = (await driver.image(original(illust))).content

    assert (await driver.image(original(illust), Range=asked)).content == whole[slice_]


async def test_a_range_past_the_end_is_416(driver):
    _, illust = await add(driver)
    size = len((await driver.image(original(illust))).content)
    answer = await driver.image(original(illust), Range=f"bytes={size}-")

    assert (answer.status_code, answer.headers["content-range"]) == (416, f"bytes */{size}")


async def test_a_range_of_another_version_gives_the_whole(driver):
    _, illust = await add(driver)
    last_modified = (await driver.image(original(illust), "HEAD")).headers["last-modified"]
    headers = {"Range": "bytes=5-", "If-Range": "Mon, 01 Jan 2024 00:00:00 GMT"}
    other = await driver.image(original(illust), **headers)
    same = await driver.image(original(illust), **headers | {"If-Range": last_modified})

    assert (other.status_code, same.status_code) == (200, 206)


async def test_head_tells_the_length_and_sends_nothing(driver):
    _, illust = await add(driver)
    whole = await driver.image(original(illust))
    head = await driver.image(original(illust), "HEAD")

    assert head.headers["content-length"] == str(len(whole.content))
    assert head.content == b""


async def test_the_modification_time_is_the_upload(driver):
    _, illust = await add(driver)
    answer = await driver.image(original(illust), "HEAD")

    assert answer.headers["last-modified"] == "Fri, 20 Nov 2026 06:00:00 GMT"


async def test_a_wrong_extension_is_not_found(driver):
    _, illust = await add(driver)

    assert (await driver.image(original(illust).replace(".jpg", ".png"))).status_code == 404


async def test_the_address_before_a_new_upload_is_not_found(driver):
    work, illust = await add(driver)
    driver.simulator.catalogue.edit(work.id, uploaded=work.created.replace(minute=59))

    assert (await driver.image(original(illust))).status_code == 404


async def test_pictures_of_a_deleted_work_are_not_found(driver):
    work, illust = await add(driver)
    driver.simulator.catalogue.edit(work.id, deleted=True)

    assert (await driver.image(original(illust))).status_code == 404


async def test_placeholders_need_no_referer(driver):
    _, illust = await add(driver, stub="unviewable")
    answer = await driver.http.get(original(illust))

    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
    assert Image.open(io.BytesIO(answer.content)).size == (360, 360)


async def test_both_zips_hold_the_frames_in_order_and_uncompressed(driver):
    work, _ = await add(driver, type="ugoira", delays=(80, 120))
    metadata = (await driver.get("/v1/ugoira/metadata", illust_id=work.id)).json()["ugoira_metadata"]
    small = metadata["zip_urls"]["medium"]
    for url in (small, small.replace("600x600", "1920x1080")):
        archive = zipfile.ZipFile(io.BytesIO((await driver.image(url)).content))
        assert archive.testzip() is None
        assert archive.namelist() == [frame["file"] for frame in metadata["frames"]]
        assert {member.compress_type for member in archive.infolist()} == {zipfile.ZIP_STORED}
        assert Image.open(archive.open("000001.jpg")).format == "JPEG"


async def test_an_animation_without_delays_gets_some(driver):
    work, _ = await add(driver, type="ugoira")
    metadata = (await driver.get("/v1/ugoira/metadata", illust_id=work.id)).json()["ugoira_metadata"]
    archive = zipfile.ZipFile(io.BytesIO((await driver.image(metadata["zip_urls"]["medium"])).content))

    assert len(archive.namelist()) == len(metadata["frames"]) > 1


async def test_the_frames_of_an_animation_are_originals(driver):
    _, illust = await add(driver, type="ugoira", delays=(80, 120))
    first = original(illust)

    assert first.endswith("_ugoira0.jpg")
    assert (await driver.image(first)).status_code == 200
    assert (await driver.image(first.replace("ugoira0", "ugoira1"))).status_code == 200
    assert (await driver.image(first.replace("ugoira0", "ugoira2"))).status_code == 404


@pytest.mark.parametrize("extension", TYPES)
async def test_padded_pictures_are_long_enough_and_still_decode(drive, extension):
    async with drive(options=SimulatorOptions(image_min_bytes=200_000)) as driver:
        _, illust = await add(driver, extensions=(extension,))
        answer = await driver.image(original(illust))

    assert len(answer.content) >= 200_000
    Image.open(io.BytesIO(answer.content)).load()


async def test_a_slow_connection_gives_everything_in_the_end(drive):
    async with drive(options=SimulatorOptions(image_bytes_per_s=1_000_000)) as driver:
        _, illust = await add(driver, extensions=("png",))
        answer = await driver.image(original(illust))

    assert len(answer.content) == int(answer.headers["content-length"])


async def test_an_address_that_is_no_picture_is_not_found(driver):
    assert (await driver.image("/img-original/somewhere.jpg")).status_code == 404
    assert isinstance(await driver.image("/common/images/other.png"), httpx.Response)

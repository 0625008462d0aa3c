"""Drawing: every page a small landscape, always the same for the same work and page."""

import io
import math
import random
import struct
import zlib
from typing import Literal

import msgspec
from PIL import Image, ImageChops, ImageDraw, ImageFont, ImageOps

Format = Literal["jpg", "png", "gif"]
Colour = tuple[int, int, int]


class Light(msgspec.Struct, frozen=True):
    """A time of day: the colours of sky, sun and hills."""

    top: Colour
    middle: Colour
    low: Colour
    sun: Colour
    hill: Colour
    stars: bool = False


_LIGHTS = (
    Light((64, 96, 160), (226, 150, 140), (255, 222, 173), (255, 244, 214), (70, 60, 96)),
    Light((58, 128, 200), (130, 186, 226), (226, 240, 244), (255, 253, 232), (52, 98, 92)),
    Light((44, 38, 92), (206, 84, 92), (250, 186, 96), (255, 214, 140), (44, 32, 62)),
    Light((8, 14, 44), (26, 42, 92), (74, 92, 140), (236, 238, 250), (12, 18, 42), stars=True),
    Light((40, 88, 120), (140, 180, 176), (236, 226, 196), (252, 246, 226), (40, 74, 72)),
    Light((24, 22, 60), (92, 60, 124), (216, 132, 150), (252, 226, 224), (34, 26, 58), stars=True),
)


class Picture(msgspec.Struct, frozen=True):
    """What to draw. ``phase`` (0 to 1) moves the sun, for animations."""

    work_id: int
    page: int
    width: int
    height: int
    format: Format
    lighthouse: bool = False
    phase: float = 0.0
    min_bytes: int = 0


def render(picture: Picture) -> bytes:
    """Give the file of a picture. Slow (tens of milliseconds): not on the event loop."""
    return padded(encoded(draw(picture), picture.format), picture.format, picture.min_bytes)


def draw(picture: Picture) -> Image.Image:
    """Give the picture itself."""
    rng = random.Random(f"landscape {picture.work_id}")  # noqa: S311  a drawing, no secret
    light = _LIGHTS[(rng.randrange(len(_LIGHTS)) + picture.page) % len(_LIGHTS)]
    image = _sky(picture, light)
    if light.stars:
        _stars(image, rng)
    _sun(image, light, rng.uniform(0.2, 0.8), rng.uniform(0.22, 0.42) + 0.15 * picture.phase)
    horizon = int(picture.height * rng.uniform(0.58, 0.7))
    for depth in range(3):
        _hills(image, light, horizon, depth, rng)
    _sea(image, horizon + picture.height // 9)
    if picture.lighthouse:
        _lighthouse(image, light, horizon + picture.height // 9, rng.uniform(0.15, 0.85))
    _label(image, f"{picture.work_id}  p{picture.page}")
    return image


def _sky(picture: Picture, light: Light) -> Image.Image:
    size = picture.width, picture.height
    gradient = Image.linear_gradient("L").resize(size, Image.Resampling.BILINEAR)
    return ImageOps.colorize(gradient, light.top, light.low, light.middle, midpoint=120)


def _stars(image: Image.Image, rng: random.Random) -> None:
    pen = ImageDraw.Draw(image)
    for _ in range(90):
        x, y = rng.random() * image.width, rng.random() ** 1.5 * image.height * 0.6
        radius = rng.choice((0.5, 0.8, 1.3))
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), (250, 250, 255))


def _sun(image: Image.Image, light: Light, across: float, down: float) -> None:
    radius = max(1, min(image.size) // 11)
    x, y = int(image.width * across), int(image.height * down)
    glow = ImageOps.invert(Image.radial_gradient("L")).resize((radius * 8, radius * 8))
    faint = glow.point([max(0, value - 74) * 3 // 4 for value in range(256)])
    image.paste(light.sun, (x - radius * 4, y - radius * 4), faint)
    disc = Image.new("L", (radius * 8, radius * 8))
    ImageDraw.Draw(disc).ellipse((0, 0, radius * 8 - 1, radius * 8 - 1), 255)
    image.paste(light.sun, (x - radius, y - radius), disc.resize((radius * 2, radius * 2)))


def _hills(image: Image.Image, light: Light, horizon: int, depth: int, rng: random.Random) -> None:
    far = (3 - depth) / 4
    colour = _between(light.hill, light.low, far)
    base = horizon + depth * image.height // 26
    waves = [
        (rng.uniform(1, 5) * (power + 1), rng.uniform(0, math.tau), 0.06 / (power + 1)) for power in range(4)
    ]
    ridge = []
    for x in range(0, image.width + 4, 4):
        swell = sum(high * math.sin(often * x / image.width * 2 + shift) for often, shift, high in waves)
        ridge.append((x, base - int(image.height * abs(swell) * (1.3 - depth * 0.35))))
    ImageDraw.Draw(image).polygon([(0, image.height), *ridge, (image.width, image.height)], colour)


def _sea(image: Image.Image, shore: int) -> None:
    height = image.height - shore
    if height <= 0:
        return
    above = image.crop((0, shore - height, image.width, shore)) if shore >= height else image.copy()
    water = ImageOps.flip(above.resize((image.width, height)))
    water = ImageChops.multiply(water, Image.new("RGB", water.size, (170, 190, 215)))
    image.paste(water, (0, shore))
    pen = ImageDraw.Draw(image)
    for line in range(5, height, 9):
        width = image.width * (0.2 + 0.5 * ((line * 37) % 19) / 19)
        start = (line * 61) % image.width - width / 2
        pen.line(
            (start, shore + line, start + width, shore + line), _between((255, 255, 255), (90, 110, 150), 0.6)
        )


def _lighthouse(image: Image.Image, light: Light, shore: int, across: float) -> None:
    pen = ImageDraw.Draw(image, "RGBA")
    x, tall = image.width * across, image.height * 0.24
    wide = tall / 9
    lamp = shore - tall
    for side in (-1, 1):
        far = x + side * image.width
        beam = [(x, lamp), (far, lamp - tall * 0.5), (far, lamp + tall * 0.15)]
        pen.polygon(beam, (255, 246, 200, 46 if light.stars else 22))
    pen.polygon([(x - wide * 3, shore), (x, shore - wide), (x + wide * 3, shore)], (*light.hill, 255))
    pen.polygon(
        [(x - wide, shore), (x - wide * 0.6, lamp), (x + wide * 0.6, lamp), (x + wide, shore)],
        (244, 240, 232, 255),
    )
    for band in (0.2, 0.5, 0.8):
        y = lamp + tall * band
        pen.rectangle((x - wide * 0.7, y, x + wide * 0.7, y + tall * 0.1), (190, 60, 54, 255))
    pen.rectangle((x - wide * 0.5, lamp - wide, x + wide * 0.5, lamp), (255, 238, 160, 255))
    pen.polygon(
        [(x - wide * 0.8, lamp - wide), (x, lamp - wide * 2), (x + wide * 0.8, lamp - wide)],
        (80, 50, 60, 255),
    )


def _label(image: Image.Image, text: str) -> None:
    font = ImageFont.load_default(max(11, image.width // 44))
    pen = ImageDraw.Draw(image, "RGBA")
    left, top, right, bottom = pen.textbbox((0, 0), text, font=font)
    wide, tall, gap = right - left, bottom - top, image.width // 90 + 3
    x, y = image.width - wide - gap * 2, image.height - tall - gap * 2
    pen.rectangle((x - gap, y - gap, x + wide + gap, y + tall + gap), (0, 0, 0, 110))
    pen.text((x - left, y - top), text, (255, 255, 255, 230), font=font)


def _between(near: Colour, far: Colour, share: float) -> Colour:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(near, far, strict=True))
    return red, green, blue


def encoded(image: Image.Image, form: Format) -> bytes:
    """Give the image as a file of the given format."""
    out = io.BytesIO()
    match form:
        case "jpg":
            image.save(out, "JPEG", quality=88)
        case "png":
            image.save(out, "PNG", compress_level=1)
        case "gif":
            image.quantize(128, Image.Quantize.FASTOCTREE).save(out, "GIF")
    return out.getvalue()


def padded(data: bytes, form: Format, min_bytes: int) -> bytes:
    """Give the same file, made at least so long by comments that decoders skip."""
    missing = min_bytes - len(data)
    if missing <= 0:
        return data
    match form:
        case "jpg":
            whole, rest = divmod(missing, 65_533)
            comments = [
                b"\xff\xfe" + struct.pack(">H", size + 2) + bytes(size) for size in [65_533] * whole + [rest]
            ]
            return data[:2] + b"".join(comments) + data[2:]
        case "png":
            name, filling = b"paDd", bytes(missing)
            check = struct.pack(">I", zlib.crc32(name + filling))
            return data[:-12] + struct.pack(">I", missing) + name + filling + check + data[-12:]
        case "gif":
            blocks = b"".join(b"\xff" + bytes(255) for _ in range(missing // 255 + 1))
            return data[:-1] + b"\x21\xfe" + blocks + b"\x00" + data[-1:]


def placeholder(text: str, edge: int = 360) -> bytes:
    """Give a grey PNG with a word on it."""
    image = Image.new("RGB", (edge, edge), (226, 228, 232))
    font = ImageFont.load_default(max(10, edge // 14))
    ImageDraw.Draw(image).text((edge / 2, edge / 2), text, (120, 124, 130), font=font, anchor="mm")
    return encoded(image, "png")

"""Makes `book/_static/replay.webp`, the moving picture of README: a replay of the book's ring, in a real browser.

Run it as `python tests/film.py` where the tests' browser is.
"""

import io
from pathlib import Path

from labs import chromium
from PIL import Image
from playwright.sync_api import Page

from grader.arrays.devices import eight_devices
from grader.classroom.book.programs import WATCHED

TARGET = Path(__file__).parents[1] / "book" / "_static" / "replay.webp"
FLIGHT = (0, 150, 300, 450, 600, 750, 900)  # ms of what flies, each a picture
STILL, SHORT, LAST = 1500, 90, 3000  # ms that a picture stays
ONLY = "<style>body {margin: 8px; width: 760px; background: white}</style>"
AT = """time => document.querySelector(".many-devices-replay").shadowRoot.getAnimations()
  .forEach(one => { one.pause(); one.currentTime = time; })"""


def seen(page: Page) -> Image.Image:
    png = page.locator(".replay").screenshot(animations="allow")
    return Image.open(io.BytesIO(png)).convert("RGB")


def film(page: Page) -> tuple[list[Image.Image], list[int]]:
    """Each line of the replay, and how long it stays; what is sent flies."""
    pictures, times = [seen(page)], [STILL]
    while page.locator("button[aria-label^='One line on']").is_enabled():
        page.keyboard.press("ArrowRight")
        flies = page.locator(".ghost").count() > 0
        for time in FLIGHT if flies else (FLIGHT[-1],):
            page.evaluate(AT, time)
            pictures.append(seen(page))
            times.append(SHORT)
        times[-1] = STILL
    return pictures, [*times[:-1], LAST]


def on_white(picture: Image.Image, size: tuple[int, int]) -> Image.Image:
    whole = Image.new("RGB", size, "white")
    whole.paste(picture)
    return whole


def main() -> None:
    eight_devices()
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 780, "height": 700})
        page.set_content(f"<!doctype html>{ONLY}{WATCHED['ring']()._repr_html_()}")
        page.locator(".replay").focus()
        pictures, times = film(page)
    size = (max(p.width for p in pictures), max(p.height for p in pictures))
    pictures = [on_white(picture, size) for picture in pictures]
    pictures[0].save(TARGET, save_all=True, append_images=pictures[1:], duration=times, loop=0, lossless=True, method=6)
    print(f"{TARGET}: {len(pictures)} pictures, {TARGET.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()

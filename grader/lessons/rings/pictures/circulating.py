"""What circulates around a ring, as film strips: sums that collect their terms, and blocks that go both ways."""

from __future__ import annotations

from grader.draw.films import Film, film
from grader.draw.picture import Picture


def ring_sums(devices: int, title: str = "each part's sum, and whose terms it has") -> Picture:
    """A reduce-scatter on a ring: in each step, every sum moves to the next device and gets its term.

    Args:
      devices: how many devices, and so also how many parts a vector has.
      title: is written above the picture.

    Example:
      >>> grader.draw.ring_sums(2)
      each part's sum, and whose terms it has
      step 0: device 0 part 1 (0), device 1 part 0 (1)
        sends 0→1, 1→0
      step 1: device 0 part 0 (1+0), device 1 part 1 (0+1)
    """
    steps = range(devices)
    parts = tuple(tuple((d - t - 1) % devices for d in range(devices)) for t in steps)
    terms = tuple(tuple("+".join(str(k % devices) for k in range(d - t, d + 1)) for d in range(devices)) for t in steps)
    to_next = tuple((d, (d + 1) % devices) for d in range(devices))
    return film(Film(parts, terms, (to_next,) * (devices - 1), blocks="part "), title)


def two_streams(devices: int, title: str = "from the previous device, and from the next one") -> Picture:
    """An all-gather in both directions: the blocks that arrive on each device in each step.

    Args:
      devices: how many devices, which is also the number of blocks.
      title: is written above the picture.

    Example:
      >>> grader.draw.two_streams(3)
      from the previous device, and from the next one
      step 0: device 0 A0, device 1 A1, device 2 A2
      step 1: device 0 A2 A1, device 1 A0 A2, device 2 A1 A0
    """
    rows = [list[int | tuple[int, ...]](range(devices))]
    for step in range(1, devices // 2 + 1):
        from_both = devices % 2 or step < devices // 2
        rows.append([_arriving(d, step, devices)[: 2 if from_both else 1] for d in range(devices)])
    return film(rows, title, blocks="A")


def _arriving(device: int, step: int, devices: int) -> tuple[int, ...]:
    return (device - step) % devices, (device + step) % devices

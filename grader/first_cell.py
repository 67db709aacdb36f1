"""What the first cell of every lesson calls. (`grader build` writes the cell.)"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from grader.arrays.devices import eight_devices, platform


def welcome(lesson: str) -> None:
    """Get eight devices and say what they are; say also if the lesson is of another version than this package.

    Args:
      lesson: the version of the course that the lesson is of.

    Example:
      >>> grader.welcome(grader.first_cell.installed())
      No accelerator: 8 simulated CPU devices.
    """
    count = len(eight_devices())
    print(devices_in_words(*platform(count), count))
    if (here := installed()) not in (lesson, ""):
        print(
            f"This lesson is of version {lesson} of the course, and the `grader` here of {here}. Go on; but should "
            f"something not be as the text says, get the lesson of version {here}."
        )


def devices_in_words(name: str, found: int, count: int) -> str:
    """What a machine has, and what the course makes of it."""
    if name == "cpu":
        return f"No accelerator: {count} simulated CPU devices."
    if found >= count:
        return f"{found} {name.upper()} devices."
    kind = {"tpu": "TPU chip", "gpu": "GPU"}.get(name, f"{name} device")
    return f"{found} {kind}{'s' * (found > 1)}, so {count} CPU devices are simulated."


def installed() -> str:
    """The version of this package; "" in a folder of it that is not installed."""
    try:
        return version("many-devices-jax")
    except PackageNotFoundError:
        return ""

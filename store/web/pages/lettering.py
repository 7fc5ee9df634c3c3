"""Text in pictures: how wide it is, cut or broken so that it fits.

SVG neither wraps nor clips text, and fonts are not known: widths are generous estimates, and what
must not run over is also given its length.
"""

import unicodedata

NARROW = frozenset("iljtfrI.,:;'|!()[]·- ")
BROAD = frozenset("mwMW@%&")


def width(text: str, size: float) -> float:
    """How wide a text is at a font size, in the size's unit; an estimate for a broad sans serif."""
    return size * sum(map(_share, text))


def _share(char: str) -> float:
    """The width of a character as a share of the font size, after DejaVu Sans and Verdana."""
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF" or ord(char) > 0x1F000:  # noqa: PLR2004 - emoji
        return 1.0
    if char in NARROW:
        return 0.4
    return 0.9 if char in BROAD else 0.72 if char.isupper() else 0.64


def fitted(text: str, size: float, room: float) -> str:
    """A text cut with an ellipsis where it is wider than the room there is."""
    if width(text, size) <= room:
        return text
    kept = text
    while kept and width(f"{kept}…", size) > room:
        kept = kept[:-1]
    return f"{kept.rstrip()}…"


def lines(text: str, size: float, room: float, most: int) -> list[str]:
    """A text broken at spaces into as many lines as it takes, the last of ``most`` cut to fit."""
    found: list[str] = []
    for word in text.split():
        if found and width(f"{found[-1]} {word}", size) <= room:
            found[-1] += f" {word}"
        else:
            found.append(word)
    kept, rest = found[: most - 1], found[most - 1 :]
    return [fitted(line, size, room) for line in [*kept, " ".join(rest)] if line]

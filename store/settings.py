"""Settings from the environment; beside gunicorn's, the only reader of ``os.environ``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from store.text import ascii_url

SHIPPED_DATA = Path(__file__).parent.parent / "data"
"""The sample of the checkout; nothing is polled into it unless ``DATA_DIR`` names it."""

NOT_THE_SAMPLE = (
    "DATA_DIR is not set, and polls would be added to the sample that came with the checkout. "
    "Set DATA_DIR to a directory of your own (`flask init DIR` makes one), or to "
    f"{SHIPPED_DATA} if the sample is meant"
)


class SettingsError(Exception):
    """A setting has a value that cannot be used; the sentence says what to change."""


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of a process: where the data is and how the service is reached.

    With ``poll_enabled`` a serving process polls on schedule, looking every ``poll_tick`` seconds.
    ``metrics_port`` serves figures.
    ``environ`` is kept for secrets: API keys, whose variable names stand in ``models.json``.
    """

    data_dir: Path = SHIPPED_DATA
    base_url: str | None = None
    listening_at: str | None = None
    hosts: tuple[str, ...] = ()
    proxy: str | None = None
    poll_enabled: bool = False
    poll_tick: float = 60.0
    metrics_port: int | None = None
    environ: dict[str, str] = {}

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Read the settings from the environment, or from a mapping in its place.

        Raises:
            SettingsError: a variable has a value that cannot be used.
        """
        env = dict(os.environ if environ is None else environ)
        enabled = env.get("POLL_ENABLED", "").strip()
        if enabled not in ("", "0", "1"):
            raise SettingsError("POLL_ENABLED must be 1 to poll on schedule, or 0")
        return cls(
            data_dir=Path(env["DATA_DIR"]) if env.get("DATA_DIR") else SHIPPED_DATA,
            base_url=_base_url(env.get("BASE_URL", "").strip()),
            # Set by store/gunicorn.py, for only gunicorn knows where it listens.
            listening_at=env.get("LISTENING_AT") or None,
            hosts=tuple(env.get("HOSTS", "").replace(",", " ").split()),
            proxy=env.get("POLL_PROXY") or None,
            poll_enabled=enabled == "1",
            poll_tick=_poll_tick(env.get("POLL_TICK_SECONDS", "").strip()),
            metrics_port=_port(env.get("METRICS_PORT", "").strip()),
            environ=env,
        )

    @property
    def has_own_data(self) -> bool:
        """True if ``DATA_DIR`` was set, be it to the checkout's own sample."""
        return self.data_dir != SHIPPED_DATA or bool(self.environ.get("DATA_DIR"))

    def check_schedule(self) -> None:
        """Check that polls on schedule have data of their own to be added to.

        Raises:
            SettingsError: they would be added to the sample that came with the checkout.
        """
        if self.poll_enabled and not self.has_own_data:
            raise SettingsError(f"POLL_ENABLED is 1, but {NOT_THE_SAMPLE}.")

    def address(self, of_site: str | None) -> str | None:
        """Return the public address, without a slash at its end; ``site.json`` may give one."""
        address = self.base_url or of_site
        return address.rstrip("/") if address else None

    def __repr__(self) -> str:
        """Return the data directory only: any other value may hold a key that was pasted there."""
        return f"Settings(data_dir={self.data_dir!r})"

    def secret(self, name: str) -> str | None:
        """Return a variable, or the text of the file that ``<name>_FILE`` names; ``None`` if unset.

        Raises:
            SettingsError: the file cannot be read.
        """
        if value := self.environ.get(name, "").strip():
            return value
        # As Docker and systemd hand secrets over.
        file = self.environ.get(f"{name}_FILE")
        if not file:
            return None
        try:
            return Path(file).read_text(encoding="utf-8").strip() or None
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise SettingsError(f"{name}_FILE names a file that cannot be read: {why}") from None


def _base_url(given: str) -> str | None:
    """Return ``BASE_URL`` in ASCII and without a slash at its end."""
    if not given:
        return None
    try:
        return ascii_url(given).rstrip("/")
    except ValueError as error:
        raise SettingsError(f"BASE_URL {error}") from None


def _port(given: str) -> int | None:
    """Return ``METRICS_PORT``, from 1 to 65535."""
    if not given:
        return None
    if not (given.isascii() and given.isdigit() and 0 < int(given) < 65_536):  # noqa: PLR2004
        raise SettingsError("METRICS_PORT must be a port, 1 to 65535")
    return int(given)


def _poll_tick(given: str) -> float:
    """Return ``POLL_TICK_SECONDS``, from 0.1 s (tests) to a day."""
    try:
        value = float(given or 60)
    except ValueError:
        # Out of bounds, so that the sentence below is said of it, too.
        value = 0.0
    if not 0.1 <= value <= 86_400:  # noqa: PLR2004 - a day
        raise SettingsError("POLL_TICK_SECONDS must be a number of seconds, 0.1 to 86400")
    return value

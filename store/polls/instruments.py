"""The instrument: what an assistant is asked with, all but the question, kept as a file.

What is no part of it may differ between two answers that are compared: prices, tier, batches, pace,
time-outs, the larger budget of a second try, and the address of the server.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec.structs import replace

from store.disk import atomic_write, make_folder, sync_directory
from store.polls.prompt import Prompt, prompt
from store.polls.providers import PROVIDERS
from store.polls.secrets import body_without
from store.records import Assistant, Instrument, instrument_id

FOLDER = "instruments"


def encode_instrument(assistant: Assistant, key: str | None = None) -> bytes:
    """Return what an assistant of a real provider is asked with, as canonical JSON.

    Members are sorted by name, without spaces between them, in UTF-8. It is published, so the key
    is taken out; an assistant with another one in its entry is not asked.
    """
    asked = prompt("{question}")
    request = PROVIDERS[assistant.api].build_request(
        replace(assistant, tier=None), Prompt("{system}", "{prompt}"), None
    )
    instrument = Instrument(
        version=1,
        api=assistant.api,
        model=assistant.model,
        web_search=assistant.web_search,
        structured=assistant.structured,
        system=asked.system,
        prompt=asked.user,
        request=dict(request.body),
    )
    return body_without(key, msgspec.json.encode(instrument, order="sorted"))


def keep_instrument(directory: Path, assistant: Assistant, key: str | None) -> str | None:
    """Return the id of what an assistant is asked with, once a data directory has its text.

    A sample assistant is asked nothing, and has none.

    Raises:
        OSError: it could not be written.
    """
    if assistant.api == "sample":
        return None
    data = encode_instrument(assistant, key)
    path = directory / FOLDER / f"{instrument_id(data)}.json"
    if not path.exists():
        make_folder(path.parent)
        sync_directory(directory)
        atomic_write(path, data)
        sync_directory(path.parent)
    return path.stem

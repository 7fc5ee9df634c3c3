"""What is warned of in models.json before anybody is asked: keys that go to strangers."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from store.cli.checks import doubtful_key
from store.polls.spending import missing_prices
from store.records import Assistant, Models


def assistant(**fields: Any) -> Assistant:
    """An assistant of a real provider."""
    base = {"name": "A", "api": "chat", "base_url": "https://x.example", "model": "m"}
    return Assistant(**{**base, **fields})


@pytest.mark.parametrize(
    ("key_env", "base_url"),
    [
        ("AWS_SECRET_ACCESS_KEY", "https://api.openai.com/v1"),
        ("AWS_ACCESS_KEY_ID", "https://api.openai.com/v1"),
        ("SECRET_KEY", "https://gateway.example/v1"),
        ("PATH", "https://api.openai.com/v1"),
        ("DATABASE_URL", "https://gateway.example/v1"),
        ("KEYCLOAK_PASSWORD", "https://gateway.example/v1"),
        ("OPENAI_API_KEY", "https://openai.com.evil.example/v1"),
        ("OPENAI_API_KEY", "https://api.anthropic.com/v1"),
        ("ANTHROPIC_API_KEY", "https://notanthropic.com/v1"),
        ("GITHUB_TOKEN", "https://evil.example/v1"),
    ],
)
def test_a_key_that_goes_to_a_stranger_is_doubted(key_env: str, base_url: str) -> None:
    """No key's name, or another provider's: the sentence quotes neither name nor address."""
    doubt = doubtful_key(assistant(base_url=base_url, key_env=key_env))
    assert doubt
    assert key_env not in doubt
    assert "example" not in doubt


@pytest.mark.parametrize(
    ("key_env", "base_url"),
    [
        ("OPENAI_API_KEY", "https://api.openai.com/v1"),
        ("OPENAI_API_KEY", "https://eu.api.openai.com/v1"),
        ("GEMINI_API_KEY", "https://generativelanguage.googleapis.com/v1beta"),
        ("GATEWAY_KEY", "https://gateway.example/v1"),
        ("gateway_key_2", "https://gateway.example/v1"),
        ("REPLICATE_API_TOKEN", "https://api.replicate.com/v1"),
        ("PATH", "http://localhost:11434/v1"),
        (None, "https://gateway.example/v1"),
    ],
)
def test_a_key_that_goes_where_it_belongs_is_not(key_env: str | None, base_url: str) -> None:
    """A provider's own host, a key of another name, and this very machine bring no warning."""
    assert doubtful_key(assistant(base_url=base_url, key_env=key_env)) is None


def test_the_assistants_of_a_new_data_directory_are_beyond_doubt() -> None:
    """What `flask init` writes brings no warning about a key, and gives every price."""
    template = Path(__file__).parent.parent / "templates" / "init" / "models.json"
    models = msgspec.json.decode(template.read_bytes(), type=Models).models
    assert [doubtful_key(model) for model in models] == [None] * len(models)
    searching = [msgspec.structs.replace(model, web_search=True) for model in models]
    assert [missing_prices(model) for model in searching] == [[]] * len(models)

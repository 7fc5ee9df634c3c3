"""API keys: where they come from, where they may go, and that they show nowhere else."""

from typing import Any

import pytest

from store.polls.secrets import (
    PASTED,
    SHORTEST,
    faults,
    key_of,
    redact,
    redact_body,
)
from store.records import Assistant
from store.settings import SettingsError

CANARY = "sk-canary-4f1d"


def assistant(**fields: Any) -> Assistant:
    """An assistant of a real provider."""
    base = {"name": "A", "api": "chat", "base_url": "https://x.example", "model": "m"}
    return Assistant(**{**base, **fields})


def ready(environ: dict[str, str], **fields: Any) -> str | None:
    """The key of an assistant in an environment."""
    return key_of(assistant(**fields), environ.get)


def test_a_key_is_looked_up_by_its_name() -> None:
    """The variable named in models.json holds the key; none named, none needed."""
    assert ready({"KEY": CANARY}, key_env="KEY") == CANARY
    assert ready({}) is None
    assert key_of(Assistant(name="A", api="sample"), lambda _: None) is None


@pytest.mark.parametrize(
    ("environ", "fields", "sentence"),
    [
        ({}, {"key_env": "KEY"}, "A: the environment variable KEY is not set"),
        ({}, {"key_env": "HF_TOKEN"}, "A: the environment variable HF_TOKEN is not set"),
        (
            {},
            {"base_url": None},
            "A, models.json: this assistant lacks base_url, which its api needs",
        ),
        (
            {},
            {"base_url": None, "model": None},
            "A, models.json: this assistant lacks base_url and model, which its api needs",
        ),
        *[
            (
                {"KEY": value},
                {"key_env": "KEY"},
                "A: the environment variable KEY does not hold an API key: ",
            )
            for value in ("a b", "a\nb", "schlüssel")
        ],
        (
            {},
            {"base_url": "https://api.example/v1/chat/completions"},
            'A, models.json at base_url: its api adds "/chat/completions" by itself; write "https',
        ),
        ({}, {"key_env": "sk_live_9f8a7b6c5d4e3f2a1b0c"}, f"A, models.json at key_env: {PASTED}"),
    ],
)
def test_who_cannot_be_asked_is_told_what_to_set(
    environ: dict[str, str], fields: dict[str, Any], sentence: str
) -> None:
    """The sentence names the variable or the member, never a value."""
    with pytest.raises(SettingsError) as raised:
        ready(environ, **fields)
    assert str(raised.value).startswith(sentence)
    assert not any(value in str(raised.value) for value in environ.values())
    assert "9f8a7b" not in str(raised.value)


@pytest.mark.parametrize(
    "name",
    ["OPENAI_API_KEY", "a_long_variable_name_in_small_letters", "KEY_2026_FOR_THE_OLD_SERVER"],
)
def test_ordinary_names_are_no_keys(name: str) -> None:
    """A variable may be called what it likes."""
    assert ready({name: CANARY}, key_env=name) == CANARY


@pytest.mark.parametrize(
    ("path", "is_good"),
    [
        ("/models/meta-llama/Llama-3-8B/v1", True),
        ("/models/v1", False),
        ("/v1beta/models", False),
        ("/v1beta/models/gemini-3-pro:generateContent", False),
    ],
)
def test_what_an_api_adds_is_not_part_of_an_address(path: str, *, is_good: bool) -> None:
    """Some servers have every model below an address of its own, which is no such thing."""
    assert (not [*faults(assistant(base_url=f"https://api.example{path}"))]) is is_good


@pytest.mark.parametrize("member", ["model", "extra"])
def test_who_has_a_key_pasted_where_it_would_be_published_is_not_asked(member: str) -> None:
    """The sentence names the member, and never the key."""
    pasted = "sk-proj-4f9a1c7e2b8dAbCdEf0123"
    value: Any = pasted if member == "model" else {"x": [pasted]}
    [(where, sentence)] = faults(assistant(**{member: value}))
    assert (where, "looks like an API key" in sentence) == (member, True)
    with pytest.raises(SettingsError) as raised:
        ready({}, **{member: value})
    assert "4f9a1c7e" not in str(raised.value)


def test_placeholders_are_not_secrets() -> None:
    """A local server's "ollama" is a product name elsewhere, and stays one."""
    short, long = "x" * (SHORTEST - 1), "y" * SHORTEST
    for key in (short, None):
        assert redact(key, [short, long]) == [short, long]
    assert redact(long, {"a": [f"{long}.", 5, None]}) == {"a": ["[redacted].", 5, None]}


def test_a_key_in_what_is_no_json_is_taken_out_too() -> None:
    """Backslashes that spell no JSON do not hide a key."""
    body = b"\\ no JSON, sk-canary"
    assert redact_body("sk-canary", body) == b"\\ no JSON, [redacted]"

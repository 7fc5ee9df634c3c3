"""The sentence model is asked where words leave something open, and never waited for."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from builders import answered, app_over, command, write_data
from small_model import SmallModel, embeddings_of, encode_all, model_in

from store.embeddings import model, vectors
from store.embeddings.comparing import RETRY_AFTER, SHARE, Embeddings
from store.embeddings.model import ModelError, SentenceModel
from store.embeddings.vectors import VectorFile, VectorsError, key_of
from store.search import Document

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flask.testing import FlaskClient

    from store.embeddings.model import ModelFiles

ROOT = Path(__file__).parent.parent
DOCUMENTS = (
    Document("humidifier", ("Best humidifier", "moist maker"), situations=("the air is dry",)),
    Document("sofa", ("Best sofa",), situations=("somewhere to sit",)),
)
TEXTS = ["humidifier", "moist maker", "the air is dry", "sofa", "somewhere to sit"]


@pytest.fixture
def files(tmp_path: Path) -> ModelFiles:
    return model_in(tmp_path / "model")


def raising(error: Exception) -> Callable[..., None]:
    """What fails whatever it is given."""

    def fail(*_: object) -> None:
        raise error

    return fail


def settle() -> None:
    """Wait until what was begun in the background has ended."""
    for thread in threading.enumerate():
        if thread.name.startswith("embeddings"):
            thread.join(10)


class TestFile:
    """``.meaning/vectors`` is whole, or not used."""

    def write(self, directory: Path) -> VectorFile:
        """A file with two vectors by the model "m"."""
        file = VectorFile(directory)
        with file.locked():
            file.write("m", {key_of("a"): b"1234", key_of("b"): b"5678"})
        return file

    def test_what_is_written_is_read_again(self, tmp_path: Path) -> None:
        """By the same model alone: another one's vectors mean something else."""
        file = self.write(tmp_path)
        assert file.read("m") == {key_of("a"): b"1234", key_of("b"): b"5678"}
        with pytest.raises(VectorsError, match="was made by another model; run `flask meaning`"):
            file.read("another")
        assert VectorFile(tmp_path / "elsewhere").read("m") == {}

    @pytest.mark.parametrize("cut", [0, 3, 30, 60, -1])
    def test_a_damaged_file_is_named(self, tmp_path: Path, cut: int) -> None:
        """A torn or altered file is never used, and the sentence says what to do."""
        self.write(tmp_path)
        path = tmp_path / vectors.VECTORS
        data = path.read_bytes()
        for damaged in (data[:cut], data[:cut] + b"?" + data[cut:][1:]):
            path.write_bytes(damaged)
            with pytest.raises(
                VectorsError, match=r"^.meaning/vectors is damaged; .*flask meaning"
            ):
                VectorFile(tmp_path).read("m")


class TestEncoding:
    """Only what is missing is encoded, and what was done is kept."""

    def encode(self, directory: Path, made_by: SmallModel, texts: Sequence[str] = TEXTS) -> int:
        """Encode texts as the command does."""
        return vectors.encode(VectorFile(directory), "m", lambda: made_by, texts, lambda _: None)

    def test_only_new_and_changed_texts_are_encoded(self, tmp_path: Path) -> None:
        """What is said no longer may be said again; the model is loaded only for what is new."""
        assert self.encode(tmp_path, SmallModel()) == 5
        again = SmallModel()
        assert self.encode(tmp_path, again, [*TEXTS[1:], "new"]) == 1
        assert again.encoded == ["new"]
        unneeded: Any = None
        assert self.encode(tmp_path, unneeded, TEXTS) == 0
        assert VectorFile(tmp_path).read("m").keys() == {*map(key_of, [*TEXTS, "new"])}

    def test_an_interrupted_run_is_continued(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What was encoded before Ctrl-C is on disk; the next run does the rest."""
        monkeypatch.setattr(vectors, "BATCH", 2)
        interrupted = SmallModel()

        def interrupt(texts: Sequence[str]) -> list[bytes]:
            if len(interrupted.encoded) == 4:
                raise KeyboardInterrupt
            return SmallModel.encode(interrupted, texts)

        monkeypatch.setattr(interrupted, "encode", interrupt)
        with pytest.raises(KeyboardInterrupt):
            self.encode(tmp_path, interrupted)
        rest = SmallModel()
        assert self.encode(tmp_path, rest) == 1
        assert sorted(interrupted.encoded + rest.encoded) == sorted(TEXTS)

    def test_a_damaged_file_is_written_anew(self, tmp_path: Path) -> None:
        """Whoever runs the command is done with the damage."""
        self.encode(tmp_path, SmallModel())
        (tmp_path / vectors.VECTORS).write_bytes(b"damaged")
        assert self.encode(tmp_path, SmallModel()) == 5
        assert len(VectorFile(tmp_path).read("m")) == 5

    def test_two_at_once_are_one(self, tmp_path: Path) -> None:
        """The second says so, and neither spoils the other's file."""
        with VectorFile(tmp_path).locked(), pytest.raises(BlockingIOError):
            self.encode(tmp_path, SmallModel())


class TestComparing:
    """One at a time, with vectors that fit, in the background whatever takes long."""

    def test_nobody_waits_while_the_model_is_loaded(
        self, tmp_path: Path, files: ModelFiles
    ) -> None:
        """The first query begins it and goes by words, as do all until it is done."""
        encode_all(tmp_path, files, DOCUMENTS)
        may_load, loaded = threading.Event(), []

        def load(_: ModelFiles) -> SmallModel:
            loaded.append(may_load.wait(10))
            return SmallModel()

        embeddings = Embeddings(tmp_path, tmp_path, load, lambda _: files)
        assert embeddings.compare("air", DOCUMENTS) is None
        assert embeddings.compare("air", DOCUMENTS) is None
        may_load.set()
        settle()
        said = embeddings.compare("air", DOCUMENTS)
        assert said
        assert said["humidifier"] > said["sofa"]
        assert (loaded, embeddings.prepared) == ([True], 1)

    def test_a_busy_model_is_not_waited_for(self, tmp_path: Path, files: ModelFiles) -> None:
        """A second query goes by words while the first is compared, and a third does not."""
        encode_all(tmp_path, files, DOCUMENTS)
        inside: list[object] = []

        class Busy(SmallModel):
            def alike(self, text: str, table: Any) -> list[float]:
                if text == "first":
                    other = threading.Thread(target=compare_another, daemon=True)
                    other.start()
                    other.join(10)
                return super().alike(text, table)

        def compare_another() -> None:
            inside.append(embeddings.compare("second", DOCUMENTS))

        embeddings = embeddings_of(tmp_path, files, Busy())
        embeddings.prepare(DOCUMENTS)
        assert embeddings.compare("first", DOCUMENTS)
        assert inside == [None]
        assert embeddings.compare("third", DOCUMENTS)

    def test_comparing_takes_no_more_than_its_share(
        self, tmp_path: Path, files: ModelFiles
    ) -> None:
        """What was saved up and a share of the time since; the rest is answered by words."""
        encode_all(tmp_path, files, DOCUMENTS)
        now, used = [0.0], count()  # each comparison takes a second of CPU
        embeddings = Embeddings(
            tmp_path, tmp_path, SmallModel, lambda _: files, lambda: now[0], lambda: next(used)
        )
        embeddings.prepare(DOCUMENTS)

        def answered_by_model() -> bool:
            return embeddings.compare("air", DOCUMENTS) is not None

        assert [answered_by_model() for _ in range(3)] == [True, False, False]
        now[0] += 1 / SHARE
        assert [answered_by_model() for _ in range(3)] == [True, False, False]
        now[0] += 1000 / SHARE
        assert [answered_by_model() for _ in range(3)] == [True, False, False]

    def test_without_vectors_no_model_is_loaded(self, tmp_path: Path, files: ModelFiles) -> None:
        """Nothing is known of any category, and that is final until there is a file."""
        unneeded: Any = None
        embeddings = embeddings_of(tmp_path, files, unneeded)
        embeddings.prepare(DOCUMENTS)
        assert embeddings.compare("air", DOCUMENTS) == {}

    def test_a_new_file_or_an_edit_is_taken_up(self, tmp_path: Path, files: ModelFiles) -> None:
        """By the next query, in the background, and what was kept before is another edition."""
        embeddings = embeddings_of(tmp_path, files, SmallModel())
        embeddings.prepare(DOCUMENTS)
        encode_all(tmp_path, files, DOCUMENTS[:1])
        assert embeddings.compare("air", DOCUMENTS) is None
        settle()
        assert (embeddings.compare("air", DOCUMENTS) or {}).keys() == {"humidifier"}
        edited = (DOCUMENTS[0], Document("settee", ("Best settee",)))
        assert embeddings.compare("air", edited) is None
        settle()
        assert (embeddings.compare("air", edited) or {}).keys() == {"humidifier"}
        assert embeddings.prepared == 3

    @pytest.mark.parametrize("fault", ["a damaged file", "no model", "a failing model"])
    def test_a_fault_is_told_once_and_words_go_on(
        self, fault: str, tmp_path: Path, files: ModelFiles, caplog: pytest.LogCaptureFixture
    ) -> None:
        """No search fails for what is only a help."""
        encode_all(tmp_path, files, DOCUMENTS)
        broken = SmallModel()
        if fault == "a damaged file":
            (tmp_path / vectors.VECTORS).write_bytes(b"damaged")
        elif fault == "no model":
            files = model.ModelFiles(tmp_path / "none", tmp_path / "none")
        else:
            broken.alike = lambda *_: 1 / 0  # type: ignore[assignment,method-assign]
        embeddings = embeddings_of(tmp_path, files, broken)
        embeddings.prepare(DOCUMENTS)
        for _ in range(3):
            assert embeddings.compare("air", DOCUMENTS) == {}
        (record,) = caplog.records
        assert "search goes by words alone" in record.getMessage()

    def test_what_failed_is_tried_again(self, tmp_path: Path, files: ModelFiles) -> None:
        """After a minute, though the file is the same: it may be readable now."""
        encode_all(tmp_path, files, DOCUMENTS)
        now, broken = [0.0], [True]

        def load(_: ModelFiles) -> SmallModel:
            if broken[0]:
                raise ModelError("it cannot be read")
            return SmallModel()

        embeddings = Embeddings(tmp_path, tmp_path, load, lambda _: files, lambda: now[0])
        embeddings.prepare(DOCUMENTS)
        broken[0] = False
        assert embeddings.compare("air", DOCUMENTS) == {}
        now[0] += RETRY_AFTER
        assert embeddings.compare("air", DOCUMENTS) is None
        settle()
        assert embeddings.compare("air", DOCUMENTS)

    def test_a_system_without_threads_costs_no_search(
        self, tmp_path: Path, files: ModelFiles, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Words answer, and it is tried again."""
        encode_all(tmp_path, files, DOCUMENTS)
        embeddings = embeddings_of(tmp_path, files, SmallModel())
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", raising(RuntimeError("no new thread")))
            assert embeddings.compare("air", DOCUMENTS) is None
        assert embeddings.compare("air", DOCUMENTS) is None
        settle()
        assert embeddings.compare("air", DOCUMENTS)

    def test_without_the_extra_nothing_is_begun(self, tmp_path: Path) -> None:
        """No file is looked at and no thread started where there is neither package nor setting."""
        embeddings = Embeddings(tmp_path, None, find=lambda _: pytest.fail("looked for"))
        embeddings.is_wanted = False
        assert embeddings.compare("air", DOCUMENTS) == {}
        assert embeddings.prepared == 0


class TestModel:
    """What is missing is named, and where."""

    def test_a_missing_file_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The sentence says which file; it does not repeat the setting's value."""
        monkeypatch.setattr(model, "LIBRARIES", ())
        (tmp_path / "model.onnx").write_bytes(b"")
        with pytest.raises(ModelError, match=r"^tokenizer.json not found in .* MEANING_") as raised:
            model.find(tmp_path)
        assert str(tmp_path) not in str(raised.value)

    def test_a_missing_library_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With the command that installs it."""
        monkeypatch.setattr(model, "LIBRARIES", ("json", "no_such_library"))
        with pytest.raises(ModelError, match=r"^no_such_library not installed; run: pip install"):
            model.find(tmp_path)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two ranked categories."""
    categories: dict[str, dict[str, Any]] = {
        each.slug: {
            "title": each.titles[0],
            "aliases": each.titles[1:],
            "situations": each.situations,
        }
        for each in DOCUMENTS
    }
    polls = [answered("A", ["Zoho"], slug=slug) for slug in categories]
    return write_data(tmp_path / "data", categories=categories, polls=polls)


class Slow(SmallModel):
    """Something happens while it compares."""

    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def alike(self, text: str, table: Any) -> list[float]:
        """As the small one, after that."""
        Slow.meanwhile()
        return super().alike(text, table)


class TestServing:
    """What readers get."""

    @pytest.fixture
    def served(
        self, data: Path, files: ModelFiles, monkeypatch: pytest.MonkeyPatch
    ) -> tuple[FlaskClient, Embeddings]:
        """A client of a service with the small model, and its embeddings."""
        encode_all(data, files, DOCUMENTS)
        made = embeddings_of(data, files, Slow())
        monkeypatch.setattr("app.Embeddings", lambda *_: made)
        return app_over(data).test_client(), made

    @pytest.mark.parametrize("path", ["/api/v1/search?q=my+air+sits", "/search?q=my+air+sits"])
    def test_an_answer_by_words_alone_is_kept_nowhere(
        self, served: tuple[FlaskClient, Embeddings], path: str
    ) -> None:
        """Neither by us nor by a proxy: the same search has a better one a moment later."""
        client, embeddings = served
        assert client.get(path).headers["Cache-Control"] == "no-store"
        settle()
        during = []
        Slow.meanwhile = lambda: during.append(client.application.test_client().get(f"{path}+2"))
        found = client.get(path)
        Slow.meanwhile = lambda: pytest.fail("the answer was not kept")
        assert client.get(path).data == found.data
        assert "max-age" in found.headers["Cache-Control"]
        assert during[0].headers["Cache-Control"] == "no-store"
        Slow.meanwhile = lambda: None
        assert "max-age" in client.get(f"{path}+2").headers["Cache-Control"]
        assert embeddings.prepared == 1

    @pytest.mark.parametrize("path", ["/api/v1/search?q=my+air+sits", "/search?q=my+air+sits"])
    def test_new_vectors_make_kept_answers_old(
        self, data: Path, served: tuple[FlaskClient, Embeddings], path: str
    ) -> None:
        """The same search, asked again, is answered from the vectors that are there now."""
        client, _ = served
        vectors_file = data / vectors.VECTORS
        whole = vectors_file.read_bytes()
        vectors_file.unlink()
        client.get(path)
        settle()
        words = client.get(path)
        assert "max-age" in words.headers["Cache-Control"]
        vectors_file.write_bytes(whole)
        os.utime(vectors_file, (2**31, 2**31))
        assert client.get(path).headers["Cache-Control"] == "no-store"
        settle()
        found = client.get(path)
        assert (found.status_code, "max-age" in found.headers["Cache-Control"]) == (200, True)
        vectors_file.write_bytes(b"damaged")
        assert client.get(path).headers["Cache-Control"] == "no-store"

    def test_what_is_sure_never_asks_the_model(
        self, served: tuple[FlaskClient, Embeddings]
    ) -> None:
        """What words find, and nonsense, is answered and kept though no model is loaded."""
        client, embeddings = served
        for query in ("sofa", "zoho", "qwpoiru"):
            assert "max-age" in client.get(f"/api/v1/search?q={query}").headers["Cache-Control"]
        settle()
        assert embeddings.prepared == 0


class TestCommands:
    """``flask meaning``, and what ``flask check`` says of its work."""

    @pytest.fixture(autouse=True)
    def small(self, files: ModelFiles, monkeypatch: pytest.MonkeyPatch) -> None:
        """The small model in place of an installed one."""
        monkeypatch.setattr("store.cli.encoding.find", lambda _: files)
        monkeypatch.setattr("store.cli.encoding.SentenceModel", SmallModel)

    def test_the_command_encodes_what_check_counts(self, data: Path) -> None:
        """Texts without a vector are a notice where a model is named, and after an edit."""
        assert ".meaning" not in command(data, "check").stdout  # nobody asked for any
        counted = ".meaning/vectors:1:1: notice: 5 of 5 texts that search could go by have no"
        assert counted in command(data, "check", meaning_model=data).stdout
        assert command(data, "meaning").stdout == "5 texts encoded; .meaning/vectors holds 5.\n"
        assert ".meaning" not in command(data, "check").stdout
        path = data / "categories" / "sofa.json"
        path.write_text(path.read_text().replace("somewhere to sit", "a place to sit"))
        assert "notice: 1 of 5 texts" in command(data, "check").stdout
        assert command(data, "meaning").stdout == "1 text encoded; .meaning/vectors holds 5.\n"

    def test_damage_is_told_and_mended(self, data: Path) -> None:
        """By name, as a warning: searches are answered without it."""
        command(data, "meaning")
        (data / vectors.VECTORS).write_bytes(b"damaged")
        done = command(data, "check")
        assert ".meaning/vectors:1:1: warning: search goes by words alone: " in done.stdout
        assert done.exit_code == 0
        assert command(data, "meaning").stdout == "5 texts encoded; .meaning/vectors holds 5.\n"
        assert ".meaning" not in command(data, "check").stdout

    def test_without_a_model_the_command_says_how_to_get_one(
        self, data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And check has nothing to say: the extra is one."""
        monkeypatch.setattr("store.cli.encoding.find", lambda _: None)
        done = command(data, "meaning")
        assert done.exit_code == 1
        assert "pip install '.[meaning]'" in done.stderr
        assert not (data / ".meaning").exists()
        assert ".meaning" not in command(data, "check").stdout

    def test_an_explained_search_names_whom_the_model_finds_alike(
        self, data: Path, files: ModelFiles, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """In one line at its end, where words left it open; without --explain not at all."""
        command(data, "meaning")
        small = partial(Embeddings, load=SmallModel, find=lambda _: files)
        monkeypatch.setattr("store.cli.searching.Embeddings", small)
        alike = "alike by the sentence model: "
        told = command(data, "search", "air to sit", "--explain", meaning_model=data).stdout
        *_, last = told.splitlines()
        assert last.startswith(alike)
        assert {each.split()[0] for each in last.removeprefix(alike).split(", ")} == {
            "humidifier",
            "sofa",
        }
        for arguments in (["air to sit"], ["sofa", "--explain"]):
            assert alike not in command(data, "search", *arguments, meaning_model=data).stdout


@pytest.mark.skipif(
    not model.is_packaged(), reason="the sentence model needs: pip install '.[meaning]'"
)
class TestInstalled:
    """The model of the extra."""

    def test_it_knows_what_words_do_not_say(self) -> None:
        """Texts that mean the same are alike though they share no word."""
        files = model.find(None)
        assert files
        installed = SentenceModel(files)
        groups = [installed.encode(["sofa", "somewhere to sit"]), installed.encode(["humidifier"])]
        sofa, humidifier = installed.alike("couch for the living room", installed.table(groups))
        assert 0 < humidifier < sofa < 1
        alone, _ = installed.encode(["sofa", "a text that is so long that the other is filled up"])
        assert installed.alike("sofa", installed.table([[alone]])) == [pytest.approx(1, abs=0.01)]

    def test_it_tells_nobody_of_its_use(self, tmp_path: Path) -> None:
        """The runtime would write an id into the home directory, and send what it is used for."""
        program = (
            "from store.embeddings.model import SentenceModel, find; SentenceModel(find(None))"
        )
        environ = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
        environ.pop("ORT_DISABLE_TELEMETRY", None)
        subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environ, check=True)
        assert not list(tmp_path.iterdir())

    def test_what_is_no_model_is_told(self, tmp_path: Path) -> None:
        """Files of another kind under these names, without the setting's value."""
        with pytest.raises(ModelError, match="are no model that can be used") as raised:
            SentenceModel(model_in(tmp_path / "folder"))
        assert str(tmp_path) not in str(raised.value)

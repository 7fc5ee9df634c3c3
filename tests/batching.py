"""A provider of batches on loopback, in both formats; it counts what it would send a bill for.

Questions outside batches are answered as by ``replaying.py``, and billed too. Every answer names a
product of its own, ``Bill <n>``. ``told`` sets what a model's batches do, with any of

    looks      how often a batch is looked at before it has ended (0)
    create     "drop" (made, then the line is dropped), 500 (made), or a status with which it is
               refused
    look       a status with which looks are refused
    cancel     a status with which it is refused to cancel
    why        what is said to that
    unknown    how often a new batch is answered with 404 (0)
    end        "completed", "expired", "cancelled", "failed", "hang" (till it is cancelled),
               "stuck"
    answered   how many items are answered before it ends so (all)
    results    "shuffled", "missing", "doubled", "differing", "foreign", "none"
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from email.parser import BytesParser
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from replaying import Handler as DirectHandler
from replaying import Replaying, answer_text, answering, envelope

Told = dict[str, Any]
WHY = "too many"
"""What it says of a batch that failed."""


class Batching(Replaying):
    """The server; ``bills`` are the model, the question and the way of each answer."""

    def __init__(self) -> None:
        super().__init__()
        self.RequestHandlerClass = cast("Any", Handler)
        self.dated: str | None = None
        """The date of its answers."""
        self.forget()

    def forget(self) -> Batching:
        """Return itself, and it knows nothing any more."""
        self.bills: list[tuple[str, str, str]] = []
        self.batches: dict[str, Told] = {}
        self.files: dict[str, str] = {}
        self.told: dict[str, Told] = {}
        self.paths: list[str] = []
        return self

    def finish(self) -> None:
        """Let every batch end as if it had been looked at."""
        with self.lock:
            for batch in self.batches.values():
                self.pass_time(batch)

    def bill(self, model: str, question: str, how: str) -> int:
        """Write a bill for an answer; its number."""
        self.bills.append((model, question, how))
        return len(self.bills)

    def pass_time(self, batch: Told) -> None:
        """Let a batch end if it was looked at as often as it takes."""
        if batch["status"] != "in_progress" or batch["end"] in ("hang", "stuck"):
            return
        if batch["looks"]:
            batch["looks"] -= 1
        else:
            self.end(batch, batch["end"])

    def end(self, batch: Told, how: str) -> None:
        """Answer and bill the items of a batch, and let it end."""
        told = self.told.get(batch["model"], {})
        batch["status"] = how
        count = told.get("answered", len(batch["items"]) if how == "completed" else 0)
        results = []
        for number, item in enumerate(batch["items"]):
            if number >= count:
                results.append([item["id"], how, None])
            else:
                bill = self.bill(batch["model"], item["question"], "batch")
                text = answer_text([f"Bill {bill}"])
                results.append([item["id"], "answer", text])
        batch["results"] = _disturbed(results, told.get("results")) if how != "failed" else []


@contextmanager
def serving() -> Iterator[Batching]:
    """Serve on a thread of the test's own process."""
    with Batching() as server, answering(server):
        yield server


class Handler(DirectHandler):
    """One connection."""

    @property
    def server_(self) -> Batching:
        """The server this handler belongs to."""
        return cast("Batching", self.server)

    def do_GET(self) -> None:  # noqa: N802 - the base class calls it so
        """A look at a batch, or its results."""
        path = urlsplit(self.path).path
        with self.server_.lock:
            self.server_.paths.append(self.path)
            if found := re.search(r"/files/([^/]+)/content$", path):
                self._file(found[1])
            elif found := re.search(r"/batches/([^/:]+)/results$", path):
                self._results(found[1])
            else:
                self._look(unquote(path.rpartition("/")[2]))

    def do_POST(self) -> None:  # noqa: N802 - likewise
        """A batch to be made or ended, an upload, or a question."""
        path = urlsplit(self.path).path
        raw = self.rfile.read(int(self.headers["Content-Length"] or 0))
        with self.server_.lock:
            self.server_.paths.append(self.path)
            if path.endswith("/files"):
                return self._upload(raw)
            if found := re.search(r"/batches/([^/:]+)[/:]cancel$", path):
                return self._cancel(found[1])
            if path.endswith("/batches"):
                return self._create(json.loads(raw))
        return self._answer(json.loads(raw))

    def _answer(self, body: dict[str, Any]) -> None:
        model, question = self._read(body)[1:]
        with self.server_.lock:
            number = self.server_.bill(model, question, "direct")
            self.server_.script[model] = [{"picks": [f"Bill {number}"]}]
        super()._answer(body)

    def _upload(self, raw: bytes) -> None:
        kind = self.headers["Content-Type"].encode()
        form = BytesParser().parsebytes(b"Content-Type: " + kind + b"\r\n\r\n" + raw)
        fields = {
            part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
            for part in cast("list[Any]", form.get_payload())
        }
        name = f"file-{len(self.server_.files) + 1}"
        self.server_.files[name] = cast("bytes", fields["file"]).decode()
        self._json(200, {"id": name, "object": "file", "purpose": "batch"})

    def _create(self, body: Told) -> None:
        api, items = self._items(body)
        model = items[0]["model"]
        told = self.server_.told.get(model, {})
        create = told.get("create")
        known = f"b{len(self.server_.batches) + 1}"
        batch = {
            "id": known,
            "api": api,
            "model": model,
            "items": items,
            "looks": told.get("looks", 0),
            "unknown": told.get("unknown", 0),
            "end": told.get("end", "completed"),
            "status": "in_progress",
            "results": None,
        }
        if create in (None, "drop", 500):
            self.server_.batches[known] = batch
        if create == "drop":
            self.close_connection = True
        elif create:
            self._refuse(create, told)
        else:
            self._json(200, self._seen(batch))

    def _items(self, body: Told) -> tuple[str, list[Told]]:
        if "requests" in body:
            items = [_item("messages", r["custom_id"], r["params"]) for r in body["requests"]]
            return "messages", items
        lines = [json.loads(x) for x in self.server_.files[body["input_file_id"]].splitlines()]
        api = "responses" if lines[0]["url"].endswith("responses") else "chat"
        items = [_item(api, x["custom_id"], x["body"]) for x in lines]
        return api, items

    def _look(self, known: str) -> None:
        batch = self.server_.batches.get(known)
        if batch is None or batch["unknown"]:
            if batch:
                batch["unknown"] -= 1
            return self._json(404, {"error": {"message": "no such batch"}})
        told = self.server_.told.get(batch["model"], {})
        if status := told.get("look"):
            return self._refuse(status, told)
        self.server_.pass_time(batch)
        return self._json(200, self._seen(batch))

    def _cancel(self, known: str) -> None:
        batch = self.server_.batches.get(known)
        if batch is None:
            return self._json(404, {"error": {"message": "no such batch"}})
        told = self.server_.told.get(batch["model"], {})
        if status := told.get("cancel"):
            return self._refuse(status, told)
        if batch["status"] == "in_progress" and batch["end"] != "stuck":
            self.server_.end(batch, "cancelled")
        return self._json(200, self._seen(batch))

    def _seen(self, batch: Told) -> Told:
        """A batch as its format describes it."""
        has_ended = batch["status"] != "in_progress"
        if batch["api"] == "messages":
            status = "ended" if has_ended else "in_progress"
            return {"id": batch["id"], "type": "message_batch", "processing_status": status}
        kinds = {kind == "answer" for _, kind, _ in batch["results"] or []}
        error = {"code": "token_limit_exceeded", "message": WHY}
        return {
            "id": batch["id"],
            "object": "batch",
            "status": batch["status"],
            "output_file_id": f"out-{batch['id']}" if True in kinds else None,
            "error_file_id": f"err-{batch['id']}" if False in kinds else "",
            "errors": {"data": [error]} if batch["status"] == "failed" else None,
        }

    def _file(self, name: str) -> None:
        batch = self.server_.batches[name[4:]]
        good = name.startswith("out")
        kept = [
            line
            for line, (_, kind, _) in zip(self._lines(batch), batch["results"], strict=True)
            if good == (kind == "answer")
        ]
        return self._send(200, {}, _jsonl(kept))

    def _results(self, known: str) -> None:
        batch = self.server_.batches.get(known)
        if batch is None or batch["results"] is None:
            return self._json(404, {"error": {"message": "no results yet"}})
        return self._send(200, {}, _jsonl(self._lines(batch)))

    def _lines(self, batch: Told) -> list[Told]:
        """The results in the format's own shape."""
        shape = _anthropic if batch["api"] == "messages" else _openai
        return [
            shape(
                known,
                kind,
                envelope(batch["api"], said, batch["model"]) if kind == "answer" else said,
            )
            for known, kind, said in batch["results"]
        ]

    def _refuse(self, status: int, told: Told) -> None:
        self._json(status, {"error": {"message": told.get("why", "oops")}})

    def _json(self, status: int, body: object) -> None:
        headers = {"Date": self.server_.dated} if self.server_.dated else {}
        self._send(status, headers, json.dumps(body).encode())


def _item(api: str, known: str, body: Told) -> Told:
    text = body["input"] if api == "responses" else body["messages"][-1]["content"]
    question = text.partition("\n")[0]
    return {"id": known, "model": body["model"], "question": question}


def _disturbed(results: list[Any], how: str | None) -> list[Any]:
    """Results as a provider should not give them."""
    if how == "shuffled":
        random.Random(1).shuffle(results)
    elif how == "missing":
        return results[1:]
    elif how == "none":
        return []
    elif how == "doubled":
        return [*results, *results]
    elif how == "differing":
        return [*results, [results[0][0], "answer", answer_text(["Other"])]]
    elif how == "foreign":
        return [["0123456789abcdef-0", "answer", answer_text(["Foreign"])], *results]
    return results


def _jsonl(lines: list[Told]) -> bytes:
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def _openai(known: str, kind: str, said: Any) -> Told:
    if kind in ("expired", "cancelled"):
        error = {"code": f"batch_{kind}", "message": kind}
        return {"id": "r", "custom_id": known, "response": None, "error": error}
    response = {"status_code": 200, "request_id": f"req-{known}", "body": said}
    return {"id": "r", "custom_id": known, "response": response, "error": None}


def _anthropic(known: str, kind: str, said: Any) -> Told:
    if kind == "answer":
        return {"custom_id": known, "result": {"type": "succeeded", "message": said}}
    return {"custom_id": known, "result": {"type": kind.replace("cancelled", "canceled")}}

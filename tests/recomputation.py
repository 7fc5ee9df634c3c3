"""The published figures once more, from the rules as ``/methodology`` tells them.

Nothing here is imported from our own modules: plain dictionaries, naive code, the JSON files and
the JSON Lines as they stand. What it computes is compared with the live answers.
"""

import datetime as dt
import hashlib
import json
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

from certainty_figures import Figures, overlap
from slugify import slugify

Json = dict[str, Any]


# ------------------------------------------------------------------ names

_DROPPED = re.compile(
    "[™®©℠"
    # Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties.txt, and U+2800
    "\u00ad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


@cache
def key_of(name: str) -> str:
    """Rule 2: letters and digits, and one dot for whatever stands between two digits."""
    text = unicodedata.normalize("NFKC", _DROPPED.sub("", name)).casefold()
    text = text.replace("+", "plus").replace("#", "sharp").replace("&", "and")
    key, gap, script = "", False, ""
    for char in unicodedata.normalize("NFD", text):
        if unicodedata.combining(char):
            if script not in ("LATIN", "GREEK", "CYRILLIC"):
                key += char
            continue
        script = unicodedata.name(char, "?").split()[0]
        if char.isalnum():
            key += "." + char if gap and char.isdigit() and key[-1:].isdigit() else char
            gap = False
        else:
            gap = True
    return unicodedata.normalize("NFC", key) or name.casefold()


@cache
def plain_slug_of(name: str) -> str | None:
    """Rule 6: the slug of the name, if it is the name's own."""
    plain = _slugged(name)
    return plain if len(plain) <= 100 and key_of(plain) == key_of(name) else None


@cache
def slug_of(name: str) -> str:
    """The plain slug, or one with a suffix when it is not clearly its own."""
    plain = plain_slug_of(name)
    if plain and not re.search("-[0-9a-f]{6}$", plain):
        return plain
    return hashed_slug_of(name)


@cache
def hashed_slug_of(name: str, digits: int = 6) -> str:
    """Rule 6: the slug that a name has when its plain one is taken or not its own."""
    digest = hashlib.sha256(key_of(name).encode()).hexdigest()[:digits]
    plain = _slugged(name)[: 99 - digits].strip("-")
    return f"{plain}-{digest}" if plain else digest


def _slugged(name: str) -> str:
    text = unicodedata.normalize("NFKC", _DROPPED.sub("", name))
    text = text.replace("+", " plus ").replace("#", " sharp ").replace("&", " and ")
    return str(slugify(text))


def _without_nouns(name: str, nouns: list[str]) -> str:
    words = name.split()
    for noun in sorted(nouns, key=lambda noun: -len(noun.split())):
        size = len(noun.split())
        if size < len(words) and list(map(key_of, words[-size:])) == list(
            map(key_of, noun.split())
        ):
            return _without_nouns(" ".join(words[:-size]), nouns)
    return name


def _forms(name: str, maker: str | None, nouns: list[str]) -> set[str]:
    """Rule 3: the keys of a name as it is, without its maker, without nouns, without both."""
    forms = {name, _without_nouns(name, nouns)}
    words = name.split()
    for size in range(1, len(words)):
        if maker and key_of(" ".join(words[:size])) == key_of(maker):
            rest = " ".join(words[size:])
            bare = {rest, _without_nouns(rest, nouns)}
            forms |= {b for b in bare if " " in b or any(char.isdigit() for char in b)}
            break
    return {key_of(form) for form in forms}


# ------------------------------------------------------------------ records


def cut(text: str, limit: int) -> str:
    """At most so many characters, cut on a word, with an ellipsis."""
    if len(text) <= limit:
        return text
    words = text[:limit].split(" ")
    kept = " ".join(words[:-1]) if len(words) > 1 else text[: limit - 1]
    while len(kept) >= limit:
        kept = kept.rpartition(" ")[0]
    return kept.rstrip(" .,;:-–—") + "…"  # noqa: RUF001 - dashes are meant


def record_of(line: bytes) -> Json | None:
    """A line of history, unless it is damage by itself."""
    body = line[: -len(b',"crc":"00000000"}')] + b"}"
    if not line.endswith(b',"crc":"%08x"}' % zlib.crc32(body)):
        return None
    poll: Json = json.loads(line)
    bare = body.replace(b'"id":"%b",' % poll["id"].encode(), b"", 1)
    if hashlib.sha256(bare).hexdigest()[:16] != poll["id"] or "withheld" in poll:
        return None
    ranks = [row["rank"] for row in poll["ranking"]]
    named = [row["product"] for row in poll["ranking"]]
    if ranks != [1, 2, 3, 4, 5][: len(ranks)] or not 2020 <= int(poll["polledAt"][:4]) <= 9000:
        return None
    failed = poll["error"] is not None and poll["failure"] is not None and not named
    answered = poll["error"] is None and poll["failure"] is None and bool(named)
    if poll["pick"] != (named[0] if named else None) or not (failed or answered):
        return None
    return poll


# ------------------------------------------------------------------ everything


class Recomputation:
    """Everything a data directory should publish at a base address."""

    def __init__(self, directory: Path, base: str) -> None:
        self.base = base
        self.site: Json = {"licence": "CC BY 4.0", "stale_after_days": 30, "drop_after_days": 90}
        self.site |= _json(directory / "site.json")
        models = _json(directory / "models.json")["models"]
        self.models = [model["name"] for model in models]
        self.makers = {m["name"]: key_of(m["maker"]) for m in models if m.get("maker")}
        self.renamed = {old: m["name"] for m in models for old in m.get("former_names", [])}
        self.categories = _folder(directory / "categories")
        self.files = _folder(directory / "products")
        withheld = directory / "withheld.json"
        hidden = _json(withheld)["withheld"] if withheld.exists() else {}
        self.damaged: set[str] = set()
        self.polls = {slug: self._polls(directory, slug, hidden) for slug in self.categories}
        former = {f for file in self.categories.values() for f in file.get("former_slugs", [])}
        held = {file.stem for file in (directory / "history").glob("*.jsonl")}
        gone = held - former - self.categories.keys()  # in all-time figures alone
        everything = self.polls | {slug: self._polls(directory, slug, hidden) for slug in gone}
        self.asked = [poll for polls in everything.values() for poll in polls]
        self.successes = [
            (slug, poll)
            for slug, polls in everything.items()
            for poll in polls
            if poll["pick"] is not None
        ]
        self._resolved: dict[tuple[str, str, str | None], str] = {}
        self.first_use: dict[str, tuple[str, str, str, int, str]] = {}
        self._domains: dict[str, Counter[str]] = {}
        self._see_products()
        self._given = self._give_slugs()

    def _polls(self, directory: Path, slug: str, hidden: Json) -> list[Json]:
        """A category's records without damage, by order of appending."""
        former = self.categories.get(slug, {}).get("former_slugs", [])
        files = [*(f for f in former if f not in self.categories), slug]
        ids: set[str] = set()
        polls = []
        for file in files:
            path = directory / "history" / f"{file}.jsonl"
            for line in path.read_bytes().split(b"\n") if path.exists() else []:
                poll = record_of(line)
                if poll and poll["slug"] in files and poll["id"] not in ids:
                    ids.add(poll["id"])
                    if poll["id"] not in hidden:
                        polls.append(self._attributed(slug, poll))
                elif line:
                    self.damaged.add(slug)
        return sorted(polls, key=lambda poll: str(poll["polledAt"])) if len(files) > 1 else polls

    def _attributed(self, slug: str, poll: Json) -> Json:
        """A poll under its assistant's name of today and with the wording it answers."""
        category = self.categories.get(slug, {"question": poll["question"]})
        same = poll["question"] in category.get("former_questions", [])
        wording = category["question"] if same else poll["question"]
        return {**poll, "model": self.renamed.get(poll["model"], poll["model"]), "wording": wording}

    def _see_products(self) -> None:
        for slug, poll in self.successes:
            given = set()
            for row in poll["ranking"]:
                product = self.product(slug, row["product"], row["domain"])
                use = (poll["polledAt"], slug, poll["model"], row["rank"], row["product"])
                self.first_use[product] = min(use, self.first_use.get(product, use))
                if row["domain"]:
                    given.add((product, row["domain"]))
            for product, domain in given:
                self._domains.setdefault(product, Counter())[domain] += 1

    # -------------------------------------------------------------- products

    def product(self, category: str, name: str, domain: str | None) -> str:
        """Which product a spelling stands for: a file's slug, or ``=`` and the key."""
        asked = (category, name, domain)
        if asked not in self._resolved:
            self._resolved[asked] = self._resolve(*asked) if self.files else f"={key_of(name)}"
        return self._resolved[asked]

    def _resolve(self, category: str, name: str, domain: str | None) -> str:
        nouns = self.categories.get(category, {}).get("nouns", [])
        titles = {slug: [f["name"], *f.get("aliases", [])] for slug, f in self.files.items()}
        same = [s for s, names in titles.items() if key_of(name) in map(key_of, names)]
        if same:
            return same[0] if len(same) == 1 else f"={key_of(name)}"
        alike = [
            slug
            for slug, file in self.files.items()
            if any(
                _forms(name, file.get("maker"), nouns) & _forms(title, file.get("maker"), nouns)
                for title in titles[slug]
            )
        ]
        if len(alike) == 1:
            own = self.files[alike[0]].get("domain")
            if (not own or not domain or own == domain) and not self._apart(alike[0], name):
                return alike[0]
        at = [
            s for s, f in self.files.items() if f.get("domain_is_product") and f["domain"] == domain
        ]
        alone = len(at) == 1 and not self._apart(at[0], name)
        return at[0] if alone else f"={key_of(name)}"

    def _apart(self, file: str, name: str) -> bool:
        """Whether a product file names the product of this spelling in ``not_same_as``."""
        return any(
            key_of(slug) == key_of(name) or slug == hashed_slug_of(name)
            for slug in self.files[file].get("not_same_as", [])
        )

    def name(self, product: str) -> str:
        """What a product is called."""
        file = self.files.get(product)
        return str(file["name"]) if file else self.first_use[product][4]

    def slug(self, product: str) -> str:
        """A product's address."""
        return product if product in self.files else self._given[product]

    def _give_slugs(self) -> dict[str, str]:
        """In order of first use, each product the first slug nobody has before it."""
        former = [old for file in self.files.values() for old in file.get("former_slugs", [])]
        taken = {*self.files, *former}
        given = {}
        for product in sorted(
            self.first_use.keys() - self.files.keys(), key=self.first_use.__getitem__
        ):
            name = self.name(product)
            options = [slug_of(name), hashed_slug_of(name), hashed_slug_of(name, 64)]
            given[product] = next(option for option in options if option not in taken)
            taken.add(given[product])
        return given

    def domain(self, product: str) -> str | None:
        """A product's domain: its file's, or the one that most polls give."""
        given = self._domains.get(product, Counter())
        most = sorted(given, key=lambda domain: (-given[domain], domain))
        own = self.files.get(product, {}).get("domain")
        return str(own) if own else (most[0] if most else None)

    def owners(self) -> dict[str, str]:
        """The product that answers at each slug that a spelling ever had (rule 7)."""
        first: dict[str, tuple[bool, tuple[str, str, str, int, str], str]] = {}
        for slug, poll in self.successes:
            for row in poll["ranking"]:
                name = row["product"]
                use = (poll["polledAt"], slug, poll["model"], row["rank"], name)
                product = self.product(slug, name, row["domain"])
                for address in {slug_of(name), hashed_slug_of(name), plain_slug_of(name)}:
                    lost = address not in (slug_of(name), hashed_slug_of(name))
                    claim = (lost, use, product)
                    if address:
                        first[address] = min(claim, first.get(address, claim))
        owners = {address: product for address, (*_, product) in first.items()}
        for product in self.first_use.keys() & self.files.keys():
            owners |= dict.fromkeys(self.files[product].get("former_slugs", []), product)
        return owners | {self.slug(product): product for product in self.first_use}

    # -------------------------------------------------------------- one category

    def list_of(self, slug: str, poll: Json) -> dict[str, Json]:
        """A poll's rows by product, best first; of two rows of one product the better."""
        rows: dict[str, Json] = {}
        for row in sorted(poll["ranking"], key=lambda row: int(row["rank"])):
            rows.setdefault(self.product(slug, row["product"], row["domain"]), row)
        return rows

    def wording(self, slug: str) -> str | None:
        """The wording that stands, None where no configured model answered any."""
        answers = [poll for poll in self.polls[slug] if poll["pick"] is not None]
        current = self.categories[slug]["question"]
        by_age = list(dict.fromkeys(poll["wording"] for poll in reversed(answers)))[::-1]
        in_turn = [w for w in by_age if w != current] + [w for w in by_age if w == current]
        stands = None
        for new in in_turn:
            if not self.counted_of(slug, new):
                continue
            to_it = [poll for poll in answers if poll["wording"] == new]
            waited = _time(answers[-1]) - _time(to_it[0]) >= dt.timedelta(days=7)
            asked = {poll["model"] for poll in to_it}
            if stands is None or waited or self.counted_of(slug, stands).keys() <= asked:
                stands = new
        return stands

    def counted(self, slug: str) -> dict[str, tuple[Json, bool]]:
        """The polls that count, by model in configured order, and whether they are stale."""
        return self.counted_of(slug, self.wording(slug))

    def counted_of(self, slug: str, wording: str | None) -> dict[str, tuple[Json, bool]]:
        """The polls that would count if this wording stood."""
        latest: dict[str, Json] = {}
        newest = None
        for poll in self.polls[slug]:
            if poll["wording"] != wording or poll["model"] not in self.models:
                continue
            if poll["pick"] is not None:
                latest[poll["model"]] = poll
                newest = _time(poll)
        counted = {}
        for model in self.models:
            if model in latest and newest:
                lag = (newest - _time(latest[model])) / dt.timedelta(days=1)
                if lag <= self.site["drop_after_days"]:
                    counted[model] = (latest[model], lag > self.site["stale_after_days"])
        return counted

    def runs(self, slug: str) -> dict[str, list[tuple[str, dict[str, int]]]]:
        """By counted model, its answers in a row to this wording, asked and served alike."""
        runs = {}
        for model, (newest, _) in self.counted(slug).items():
            own = [p for p in self.polls[slug] if p["model"] == model and p["pick"] is not None]
            run: list[Json] = []
            for poll in reversed(own[: own.index(newest) + 1]):
                if not _alike(poll, newest):
                    break
                run.append(poll)
            runs[model] = [
                (
                    poll["polledAt"][:10],
                    {item: row["rank"] for item, row in self.list_of(slug, poll).items()},
                )
                for poll in run
            ]
        return runs

    def is_own(self, model: str, item: str) -> bool:
        """Whether the company behind an assistant makes a product."""
        maker = self.files.get(item, {}).get("maker")
        return maker is not None and key_of(maker) == self.makers.get(model)

    def certainty(self, slug: str) -> Figures:
        """How sure a category's ranking is."""
        return Figures(self.runs(slug), self.slug)

    def category(self, slug: str) -> Json | None:
        """The parts of a category's answer that are figures; None if not ranked.

        ``overlap`` is exact; the answer rounds it to four decimals.
        """
        counted = self.counted(slug)
        if not counted:
            return None
        lists = {model: self.list_of(slug, poll) for model, (poll, _) in counted.items()}
        combined = self.combined(lists)
        firsts = {model: next(iter(rows)) for model, rows in lists.items()}
        of_counted = [poll["id"] for poll, _ in counted.values()]
        updated = [p["polledAt"] for p in self.polls[slug] if p["id"] in of_counted][-1][:10]
        asked, current = self.wording(slug), self.categories[slug]["question"]
        shown = [{k: v for k, v in entry.items() if k != "id"} for entry in combined]
        return {
            "question": asked,
            "nextQuestion": None if asked == current else current,
            "updated": updated,
            "models": list(counted),
            "missing": [model for model in self.models if model not in counted],
            "combined": shown,
            "agreement": self._agreement(lists, firsts, combined),
            "rules": {
                "agree": sum(says := list(rules_of(lists, combined[0]["id"]).values())),
                "of": len(says),
            },
            "response": self._response(slug),
            "perModel": {
                model: [
                    {
                        "rank": row["rank"],
                        "product": self.name(product),
                        "named": row["product"],
                        "slug": self.slug(product),
                        "domain": self.domain(product),
                        "reason": row["reason"],
                    }
                    for product, row in rows.items()
                ]
                for model, rows in lists.items()
            },
            "answers": {
                model: {"polledAt": poll["polledAt"], "poll": poll["id"], "stale": stale}
                for model, (poll, stale) in counted.items()
            },
        }

    def _response(self, slug: str) -> dict[str, int]:
        """How many polls of the assistants of today brought an answer."""
        own = [poll for poll in self.polls[slug] if poll["model"] in self.models]
        return {"answered": sum(poll["pick"] is not None for poll in own), "of": len(own)}

    def combined(self, lists: dict[str, dict[str, Json]]) -> list[Json]:
        """The merged ranking of some lists, best first."""
        entries = []
        for product in {product for rows in lists.values() for product in rows}:
            ranks = {
                model: rows[product]["rank"] for model, rows in lists.items() if product in rows
            }
            best = [m for m in ranks if ranks[m] == min(ranks.values())]
            reasons = [lists[m][product]["reason"] for m in best if lists[m][product]["reason"]]
            entries.append(
                {
                    "id": product,
                    "product": self.name(product),
                    "slug": self.slug(product),
                    "domain": self.domain(product),
                    "score": sum(6 - rank for rank in ranks.values()),
                    "appearances": len(ranks),
                    "modelRanks": ranks,
                    "reason": cut(reasons[0], 280) if reasons else None,
                }
            )
        entries.sort(key=lambda e: str(e["slug"]))
        for place in (5, 4, 3, 2, 1):
            entries.sort(key=lambda e: -list(e["modelRanks"].values()).count(place))
        entries.sort(key=lambda e: -int(e["appearances"]))
        entries.sort(key=lambda e: -int(e["score"]))
        for rank, entry in enumerate(entries, start=1):
            mine = sorted(entry["modelRanks"].values())
            entry["rank"] = rank
            entry["place"] = 1 + next(
                at
                for at, other in enumerate(entries)
                if sorted(other["modelRanks"].values()) == mine
            )
            entry["tied"] = any(
                other is not entry and sorted(other["modelRanks"].values()) == mine
                for other in entries
            )
        return entries

    def _agreement(
        self, lists: dict[str, dict[str, Json]], firsts: dict[str, str], combined: list[Json]
    ) -> Json | None:
        of = len(lists)
        if of < 2:
            return None
        votes = list(firsts.values())
        most = max(votes.count(entry["id"]) for entry in combined)
        top = next(entry for entry in combined if votes.count(entry["id"]) == most)
        label = "unanimous" if most == of else "majority" if 2 * most > of else "split"
        shares = [overlap(list(a), list(b)) for a, b in combinations(lists.values(), 2)]
        return {
            "top1": {
                "product": top["product"],
                "slug": top["slug"],
                "votes": most,
                "of": of,
                "label": label,
            },
            "overlap": sum(shares, Fraction()) / len(shares),
        }

    # -------------------------------------------------------------- over all categories

    def changes(self) -> dict[str, Json]:
        """Every change by the id of the poll that brought it, with its time."""
        found: dict[str, Json] = {}
        for slug, polls in self.polls.items():
            for key in {_cell(p) for p in polls}:
                answers = [
                    poll for poll in polls if poll["pick"] is not None and _cell(poll) == key
                ]
                row: list[tuple[str, Json]] = []
                for poll in answers:  # of a day the newest, or the first of those that agree
                    now = next(iter(self.list_of(slug, poll)))
                    before, last = row[-1] if row else ("", poll)
                    if row and last["polledAt"][:10] == poll["polledAt"][:10]:
                        if (before, last["servedModel"]) == (now, poll["servedModel"]):
                            continue
                        row.pop()
                    row.append((now, poll))
                found |= self._changes_in(slug, key[0], row)
        return found

    def _changes_in(self, slug: str, model: str, row: list[tuple[str, Json]]) -> dict[str, Json]:
        found = {}
        stable = row[0][0] if row else ""
        for i in range(1, len(row)):
            (before, earlier), (now, poll) = row[i - 1], row[i]
            if now == before:
                continue
            confirmed = i + 1 < len(row) and row[i + 1][0] == now and now != stable
            if confirmed:
                stable = now
            found[poll["id"]] = {
                "id": poll["id"],
                "slug": slug,
                "title": self.categories[slug]["title"],
                "model": model,
                "from": self.name(before),
                "to": self.name(now),
                "reason": poll["reason"],
                "fromDate": earlier["polledAt"][:10],
                "toDate": poll["polledAt"][:10],
                "confirmed": confirmed,
                "page": f"{self.base}/best/{slug}",
                "api": f"{self.base}/api/v1/best/{slug}.json",
                **_renewed(earlier["servedModel"], poll["servedModel"]),
                "at": poll["polledAt"],
            }
        return found

    def leaders(self, slugs: Iterable[str]) -> list[Json]:
        """Every change of the leader of these rankings, newest first, then by title."""
        changes = [change for slug in slugs for change in self._leaders_of(slug)]
        changes.sort(key=lambda change: (change["title"].casefold(), change["slug"]))
        return sorted(changes, key=lambda change: str(change["toDate"]), reverse=True)

    def _leaders_of(self, slug: str) -> Iterator[Json]:
        """The days on which another product than before led alone, each as it was then."""
        whole = self.polls[slug]
        last: dict[str | None, tuple[str, str, Figures, Json]] = {}
        if self.wording(slug) is None:
            return
        for day in sorted({p["polledAt"][:10] for p in whole if p["pick"] is not None}):
            self.polls[slug] = [poll for poll in whole if poll["polledAt"][:10] <= day]
            wording, counted = self.wording(slug), self.counted(slug)
            figures = Figures(self.runs(slug), self.slug) if counted else None
            if figures is None or not figures.measured or len(figures.contenders) > 1:
                continue
            versions = {model: poll["servedModel"] for model, (poll, _) in counted.items()}
            if wording in last and last[wording][1] != figures.leader:
                yield self._leader(slug, day, last[wording], figures, versions)
            last[wording] = (day, figures.leader, figures, versions)
        self.polls[slug] = whole

    def _leader(
        self,
        slug: str,
        day: str,
        then: tuple[str, str, Figures, Json],
        now: Figures,
        versions: Json,
    ) -> Json:
        since, former, before, served = then
        shifts = {
            model: now.lead_of(model, now.leader, former)
            - before.lead_of(model, now.leader, former)
            for model in {*now.sizes, *before.sizes}
        }
        movers = [m for m, shift in shifts.items() if 2 * shift > sum(shifts.values())]
        version = [
            (m, served[m], versions[m])
            for m in movers
            if served.get(m) and versions.get(m) and served[m] != versions[m]
        ]
        model, old, new = version[0] if version else (None, None, None)
        return {
            "slug": slug,
            "title": self.categories[slug]["title"],
            "from": self.name(former),
            "to": self.name(now.leader),
            "fromDate": since,
            "toDate": day,
            "answers": now.answers,
            "model": model,
            "servedModelFrom": old,
            "servedModelTo": new,
            "page": f"{self.base}/best/{slug}",
            "api": f"{self.base}/api/v1/best/{slug}.json",
        }

    def last_poll(self) -> str:
        """The time of the newest poll of the site: of each category the one appended last."""
        return max(str(polls[-1]["polledAt"]) for polls in self.polls.values() if polls)

    def mentions(self) -> dict[str, Json]:
        """The mentions of every product, by its slug; ``delta`` is exact."""
        listed = [(slug, poll, set(self.list_of(slug, poll))) for slug, poll in self.successes]
        counts = Counter(product for _, _, products in listed for product in products)
        today = dt.date.fromisoformat(self.last_poll()[:10])
        cells: dict[tuple[str, ...], dict[str, set[str]]] = {}
        for slug, poll, products in listed:
            if slug not in self.categories:
                continue
            age = (today - dt.date.fromisoformat(poll["polledAt"][:10])).days
            window = "now" if age < 7 else "before" if age < 14 else "long ago"
            if age >= 0:
                cell = (slug, *_cell(poll))
                cells.setdefault(cell, {})[window] = products
        both = [(c["now"], c["before"]) for c in cells.values() if {"now", "before"} <= c.keys()]
        now = Counter(product for new, _ in both for product in new)
        before = Counter(product for _, old in both for product in old)
        kept = Counter(product for new, old in both for product in new & old)
        leaderboards: Counter[str] = Counter()
        for slug in self.categories:
            lists = [self.list_of(slug, poll) for poll, _ in self.counted(slug).values()]
            leaderboards.update({product for rows in lists for product in rows})
        found = {}
        chances = {}
        for product in counts:
            first = dt.date.fromisoformat(self.first_use[product][0][:10])
            b, c = now[product] - kept[product], before[product] - kept[product]
            if (today - first).days >= 7 and kept[product] + b + c >= 8 and b + c >= 6:
                chances[product] = two_sided(b, c)
        moved = held_to_all(chances)
        for product, mentions in counts.items():
            n = now[product] + before[product] - kept[product]
            b, c = now[product] - kept[product], before[product] - kept[product]
            first = dt.date.fromisoformat(self.first_use[product][0][:10])
            found[self.slug(product)] = {
                "name": self.name(product),
                "domain": self.domain(product),
                "mentions": mentions,
                "mentions7d": now[product],
                "polls7d": n,
                "mentionsPrev7d": before[product],
                "pollsPrev7d": n,
                "delta": Fraction(100 * (now[product] - before[product]), n) if n else None,
                "direction": "new"
                if (today - first).days < 7
                else "insufficient"
                if product not in chances
                else "flat"
                if product not in moved
                else "up"
                if b > c
                else "down",
                "categories": leaderboards[product],
            }
        return found


def _alike(one: Json, other: Json) -> bool:
    """Whether two answers of one assistant can be compared."""
    keys = ("wording", "servedModel", "instrument")
    return all(one.get(key) == other.get(key) for key in keys)


def _cell(poll: Json) -> tuple[str, str, str]:
    """Who was asked what, and how: answers of one cell can be compared."""
    return poll["model"], poll["wording"], poll.get("instrument") or ""


def rules_of(lists: dict[str, dict[str, Json]], first: str) -> dict[str, bool]:
    """By rule, whether no product comes before the first."""
    ranks = [{item: row["rank"] for item, row in rows.items()} for rows in lists.values()]
    items = {item for own in ranks for item in own}
    rules: dict[str, list[int] | list[Fraction]] = {
        "5-4-3-2-1": [5, 4, 3, 2, 1],
        "plurality": [1, 0, 0, 0, 0],
        "top three": [1, 1, 1, 0, 0],
        "named at all": [1, 1, 1, 1, 1],
        "Dowdall": [Fraction(1, rank) for rank in (1, 2, 3, 4, 5)],
        "Formula 1": [25, 18, 15, 12, 10],
    }
    says = {}
    for name, rule in rules.items():
        points = {
            x: sum((rule[own[x] - 1] for own in ranks if x in own), Fraction()) for x in items
        }
        says[name] = all(points[x] <= points[first] for x in items)
    for x in items:
        wins = []
        for y in items - {x}:
            higher = [own for own in ranks if own.get(x, 9) < own.get(y, 9)]
            lower = [own for own in ranks if own.get(x, 9) > own.get(y, 9)]
            wins.append(len(higher) > len(lower))
        if all(wins):
            says["Condorcet"] = x == first
    return says


def two_sided(b: int, c: int) -> Fraction:
    """How often b of b + c tosses of a coin are at least as uneven."""
    n = b + c
    uneven = [k for k in range(n + 1) if abs(2 * k - n) >= abs(b - c)]
    return Fraction(sum(comb(n, k) for k in uneven), 2**n)


def held_to_all(chances: dict[str, Fraction]) -> set[str]:
    """What Benjamini and Hochberg's procedure at 5 % finds."""
    m, rising = len(chances), sorted(chances.values())
    limits = [p for k, p in enumerate(rising, 1) if p * 20 * m <= k]
    return {key for key, p in chances.items() if limits and p <= max(limits)}


def _renewed(before: str | None, after: str | None) -> Json:
    """A change of the served version, where both are known."""
    known = before and after and before != after
    return {"servedModelFrom": before if known else None, "servedModelTo": after if known else None}


def _time(poll: Json) -> dt.datetime:
    return dt.datetime.fromisoformat(poll["polledAt"])


def _json(path: Path) -> Json:
    value: Json = json.loads(path.read_text(encoding="utf-8"))
    return value


def _folder(path: Path) -> dict[str, Json]:
    return {file.stem: _json(file) for file in sorted(path.glob("*.json"))}

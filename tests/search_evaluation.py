"""The relevance of search, class by class, on the judged queries under `tests/data/search`.

    python tests/search_evaluation.py                         an index in this process
    python tests/search_evaluation.py http://127.0.0.1:8000   a running server (catalogue loaded)
    add --errors to see what went wrong
"""

from __future__ import annotations

import json
import sys
import time
import urllib.parse
import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

HERE = Path(__file__).resolve().parent
JUDGED = HERE / "data" / "search"
DATA = HERE.parent / "data"
if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))

from store.rankings.search import Index, Titled

def read(path): return json.loads(path.read_text(encoding="utf8"))

def make_index(synonyms=True, common=None):
    cat = read(JUDGED / "catalogue.json")
    syn = read(DATA / "synonyms.json")["synonyms"] if synonyms and (DATA/"synonyms.json").exists() else []
    if common is None: common = read(DATA / "words.json")["words"] if (DATA/"words.json").exists() else []
    return Index([Titled(s,(t,)) for s,t in cat["categories"]],[Titled(s,(t,),d) for s,t,d in cat["products"]],syn,common)

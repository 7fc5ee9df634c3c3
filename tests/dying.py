"""Work on batches that dies at a random moment; run by ``test_polls_batches_killed``.

``python tests/dying.py DATA URL NAME`` reads JSON lines {"do": "begin" or "follow", "now",
"after": seconds or 0} and answers each with "done", "died" or "fault". Each order is carried out by
a child of its own, as a process that was just started.
"""

import json
import os
import signal
import sys
import traceback
from datetime import datetime
from pathlib import Path
from typing import Any

from polling_world import PollingWorld

from store.polls.batches import AssistantBatches, follow_batches
from store.polls.session import Summary


def ask_in_passes(order: dict[str, Any], directory: Path, url: str, name: str) -> None:
    """One order, which an alarm ends as ``kill -9`` would."""
    data = PollingWorld(directory, url)
    data.now = datetime.fromisoformat(order["now"])
    session = data.session()
    session.polling.look(session.catalogue)
    if order["after"]:
        signal.setitimer(signal.ITIMER_REAL, order["after"])
    if order["do"] == "begin":
        under_way = data.files.under_way(session.catalogue)
        free = [pair for pair in data.pairs(session, name) if pair.key not in under_way]
        if free:
            AssistantBatches(session, free[0].assistant, Summary()).send(free, None)
    else:
        follow_batches(session, name, Summary())


def main() -> None:
    """Carry out orders until there are none."""
    directory, url, name = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                ask_in_passes(json.loads(line), directory, url, name)
            except BaseException:  # noqa: BLE001 - a child ends here, whatever it met
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        outcome = "died" if os.WIFSIGNALED(status) else "done" if status == 0 else "fault"
        print(outcome, flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    main()

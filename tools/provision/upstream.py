"""Asks once whether a download site can be reached. The answer is kept with the plan."""

import threading
import urllib.error
import urllib.request
from collections.abc import Mapping

WAIT_S = 3.0


def reached(url: str, wait_s: float = WAIT_S) -> bool:
    """True if the site answers this address without an error within the time."""
    request = urllib.request.Request(url, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=wait_s) as answer:
            return int(answer.status) < 400
    except (OSError, ValueError, urllib.error.URLError):
        return False


def probe(
    urls: Mapping[str, str], environ: Mapping[str, str], wait_s: float = WAIT_S
) -> dict[str, bool]:
    """Asks all sites at once; what has not answered in time counts as not reached.

    ``TFP_UPSTREAM=1`` or ``0`` in the environment answers for all of them without asking.
    """
    told = environ.get("TFP_UPSTREAM", "")
    if told in ("0", "1"):
        return dict.fromkeys(urls, told == "1")
    answers = dict.fromkeys(urls, False)

    def ask(name: str, url: str) -> None:
        answers[name] = reached(url, wait_s)

    threads = [
        threading.Thread(target=ask, args=(name, url), daemon=True) for name, url in urls.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(wait_s + 0.5)
    return dict(answers)

"""What must not be published: whose machine it is, where things lie on it, and what its environment holds.

What is known (names, addresses, the environment) is found exactly; the rest by its form. It errs towards saying less.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from urllib.parse import quote

GONE = "…"
_SHORTEST_NAME = 4
"""A shorter name of a host or a user would be found in other words."""
_SHORTEST_SECRET = 4
_SHORTEST_MIXED = 10
_LONG = 20
_OF_EVERYBODY = frozenset(
    "root user users admin ubuntu debian runner jovyan docker nobody localhost test".split()  # noqa: SIM905
)
_SECRET_NAME = re.compile(r"key|token|secret|passw|passphrase|credential|auth|cookie|dsn", re.IGNORECASE)

_URL = re.compile(r"\b([a-z][a-z\d+.-]*)://[^\s'\"<>)\]]*[^\s'\"<>)\].,:;]", re.IGNORECASE)
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*")
_MAC = re.compile(r"\b[\da-f]{2}(?:[:-][\da-f]{2}){5}\b", re.IGNORECASE)
_INTRANET = re.compile(
    r"\b(?:10(?:\.\d{1,3}){3}|192\.168(?:\.\d{1,3}){2}|172\.(?:1[6-9]|2\d|3[01])(?:\.\d{1,3}){2})\b"
)
_KNOWN_TOKEN = re.compile(
    r"\b(?:gh[pousr]_|github_pat_|glpat-|hf_|sk-|xox[abprs]-|AKIA|eyJ)[\w.-]{12,}|\bBearer\s+\S+", re.IGNORECASE
)
_ASSIGNED = re.compile(
    r"\b([\w-]*(?:token|secret|passw(?:or)?d|api[_-]?key|credentials?)[\w-]*=)[^\s&,;'\"]+", re.IGNORECASE
)

_PART = r"[^/\\\s'\":;,()]+"
_HOMES = re.compile(rf"(?:\b[A-Za-z]:)?[/\\]+(?:home|Users)[/\\]+(?:{_PART}(?: {_PART}){{1,2}}(?=[/\\])|{_PART})")
"""A home of whoever it is; a name of several words only where the path goes on."""
_QUOTED = re.compile(r"(['\"`])(?:~|[A-Za-z]:)?[/\\][^'\"`]*[/\\](?=[^'\"`/\\]*\1)")
"""The folders of a path in quotes, which may hold blanks."""
_FOLDERS = re.compile(rf"(?:[A-Za-z]:|~)?(?:[/\\]+{_PART})+[/\\]+(?={_PART})|~[/\\]+(?:{_PART}[/\\]+)+(?={_PART})")
"""The folders of an absolute path, up to its last part."""
_TEMPORARY = re.compile(r"torchinductor_\w+")


def scrubbed(text: str) -> str:
    """A text that can be published: of each path its last part, of each URL its scheme, nothing of the machine."""
    text = _without_environment(text)
    text = _KNOWN_TOKEN.sub(GONE, text)
    text = _ASSIGNED.sub(rf"\1{GONE}", text)
    text = _without_home(text)
    text = _URL.sub(rf"\1://{GONE}", text)
    text = _MAIL.sub(GONE, text)
    text = _QUOTED.sub(rf"\1{GONE}/", text)
    text = _FOLDERS.sub(f"{GONE}/", _HOMES.sub("~", text))
    text = _without_names(_TEMPORARY.sub("torchinductor", text))
    return _INTRANET.sub(GONE, _MAC.sub(GONE, text))


def _without_environment(text: str) -> str:
    """Without what the environment holds that is nobody's business."""
    for value in _secrets(os.environ):
        text = text.replace(value, GONE)
    names = [name for name in os.environ if len(name) >= _SHORTEST_SECRET]
    if names:
        text = _set(names).sub(GONE, text)
    for name in names:
        text = text.replace(name, GONE) if _SECRET_NAME.search(name) else text
    return text


def _set(names: Sequence[str]) -> re.Pattern[str]:
    """A variable with its value, as a shell or a dictionary shows them."""
    named = "|".join(map(re.escape, names))
    return re.compile(rf"\b(?:{named})=[^\s,;]+|(['\"])(?:{named})\1: (['\"])(?:(?!\2).)*\2")


def _secrets(environment: Mapping[str, str]) -> Iterator[str]:
    """The values that may be secrets, the longest first: by their name, or since no word looks like them."""
    lines = ((name, line.strip()) for name, value in environment.items() for line in value.splitlines())
    return iter(sorted({line for name, line in lines if _may_be_secret(name, line)}, key=len, reverse=True))


def _may_be_secret(name: str, value: str) -> bool:
    if "/" in value or "\\" in value:  # paths, of which something may be left, unless they stand for a secret
        is_path = os.path.exists(value)  # noqa: PTH110 - Path's raises where a name is too long
        return bool(_SECRET_NAME.search(name)) and len(value) >= _SHORTEST_SECRET and not is_path
    if _SECRET_NAME.search(name):
        return len(value) >= _SHORTEST_SECRET and not value.isdigit()
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return len(value) >= _LONG or (mixed and len(value) >= _SHORTEST_MIXED)


def _without_home(text: str) -> str:
    """Without the home of who runs this, wherever it is, however it is written; likewise where it runs."""
    for folder, shown in _folders().items():
        for form in {folder, folder.replace("\\", "\\\\"), quote(folder), quote(folder, safe="")}:
            text = re.sub(rf"{re.escape(form)}(?![\w.-])", shown, text, flags=re.IGNORECASE if "%" in form else 0)
    return text


def _folders() -> dict[str, str]:
    """The folders that tell most, the longest first, and what is shown of them."""
    found: dict[str, str] = {}
    for of, shown in ((os.getcwd, GONE), (Path.home, "~")):
        try:
            folder = str(of())
            found |= {folder: shown, os.path.realpath(folder): shown}
        except (OSError, RuntimeError):  # it has been deleted, or there is none
            continue
    return {folder: found[folder] for folder in sorted(found, key=len, reverse=True) if len(folder) > len("/x")}


def _without_names(text: str) -> str:
    """Without the names of host and user, and the addresses of the machine."""
    for name, shown in _names():
        text = re.sub(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", shown, text, flags=re.IGNORECASE)
    for address in _addresses():
        text = text.replace(address, GONE)
    return text


def _names() -> Iterator[tuple[str, str]]:
    host = socket.gethostname()
    for name, shown in ((host, "host"), (host.partition(".")[0], "host"), (_user(), "user")):
        if len(name) >= _SHORTEST_NAME and name.lower() not in _OF_EVERYBODY:
            yield name, shown


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name
        return ""


@cache
def _addresses() -> tuple[str, ...]:
    """The addresses of the machine's network interfaces, but those that every machine has."""
    import psutil

    found = {address.address.partition("%")[0] for of in psutil.net_if_addrs().values() for address in of}
    own = (a for a in found if len(a) > len("::1") and not a.startswith(("127.", "00:00:00")))
    return tuple(sorted(own, key=len, reverse=True))

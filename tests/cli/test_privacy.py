"""Run folders are attached to public pull requests: nothing that any command writes tells whose machine it was.

The commands run as somebody with a telling home, in a folder below it, with secrets in the environment, and with an
implementation that fails with all of that in its messages.
"""

from __future__ import annotations

import getpass
import gzip
import json
import os
import re
import socket
import struct
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest

from tests.cli.command import PLAIN, TINY
from tests.cli.consoles import COMMAND, environment

HOST, USER = "workstation7", "annexample"
PLANTED = {
    "ANN_API_TOKEN": "planted-7c1f9e",
    "ANN_PLAIN_WORDS": "a sentence that nobody would guess",
    "ANN_SHORT_SECRET": "x9y8",
}

FAILS = f"""
import os, socket, sys
socket.gethostname = lambda: {HOST!r}

def fail(self, *args, **options):
    home = os.path.expanduser("~")
    raise RuntimeError(
        f"{{home}}/k.cu '{{home}}/my work/k.cu' {{os.getcwd()}} C:\\\\Users\\\\Ann Example\\\\k.cu {HOST} {USER} "
        f"https://{USER}:{{os.environ['ANN_API_TOKEN']}}@host.example ANN_API_TOKEN={{os.environ['ANN_API_TOKEN']}} "
        f"{{dict((n, v) for n, v in os.environ.items() if n.startswith('ANN'))}} {USER}@mail.example"
    )

import torch
torch.nn.RMSNorm.__init__ = fail
"""
"""What every process imports first."""


@dataclass(frozen=True, kw_only=True)
class Somebody:
    """Whose machine it is: the environment, where commands run, and all that must be nowhere."""

    env: dict[str, str]
    folder: Path
    private: list[str]

    def run(self, *words: str) -> bytes:
        """What a command prints on stdout."""
        done = subprocess.run(
            [*COMMAND, *words], cwd=self.folder, env=self.env, capture_output=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout


def addresses() -> Iterator[str]:
    """Of this machine's interfaces, but those that every machine has."""
    for of in psutil.net_if_addrs().values():
        for address in of:
            plain = address.address.partition("%")[0]
            if not plain.startswith(("127.", "::1", "00:00:00")):
                yield plain


@pytest.fixture(scope="module")
def somebody(tmp_path_factory: pytest.TempPathFactory) -> Somebody:
    """A home with a blank in its name, and a link to it."""
    base = tmp_path_factory.mktemp("machine")
    real = base / "Ann Example" / USER
    folder, scratch, site = real / "my work", real / "scratch", base / "site"
    for path in (folder, scratch, site):
        path.mkdir(parents=True)
    (site / "sitecustomize.py").write_text(FAILS, encoding="utf-8")
    home = base / "link of ann"
    home.symlink_to(real)
    said = environment({**PLANTED, "HOME": str(home), "USER": USER, "LOGNAME": USER, "TMPDIR": str(scratch)})
    said["PYTHONPATH"] = os.pathsep.join([str(site), *filter(None, [said.get("PYTHONPATH")])])
    node = f"{uuid.getnode():012x}"
    names = [HOST, USER, "Ann Example", "my work", socket.gethostname(), getpass.getuser()]
    paths = [str(base), str(home), str(real), str(Path.home()), tempfile.gettempdir() + "/", str(Path.cwd())]
    known = [*names, *paths, *PLANTED, *PLANTED.values(), node, ":".join(re.findall("..", node)), *addresses()]
    private = [word for word in known if len(word) > 3 and word not in ("root", "/root")]
    return Somebody(env={**said, "PWD": str(folder)}, folder=folder, private=private)


SWEEP = (*TINY, *PLAIN, "nn-rmsnorm", "--widths", "64", "128", "--quiet")
CHECK = [
    "--device",
    "cpu",
    "--impls",
    "nn-rmsnorm",
    "eager-rmsnorm",
    "--dtype",
    "fp32",
    "--width",
    "3",
    "--property",
    "zeros",
    "--allow",
    "zeros",
]


@pytest.fixture(scope="module")
def printed(somebody: Somebody) -> dict[str, bytes]:
    """Everything that is made to be passed on, by the command that printed it; files lie in the folder."""
    where = str(somebody.folder / "first")
    return {
        "sweep": somebody.run("sweep", *SWEEP, "--profile", "--json", "--out", where),
        "sweep again": somebody.run("sweep", *SWEEP, "--json", "--out", "second"),
        "report": somebody.run("report", "first", "--json", "--quiet"),
        "report elsewhere": somebody.run("report", where, "--out", str(somebody.folder / "third"), "--quiet"),
        "report of two": somebody.run("report", where, "second", "--out", "both", "--quiet", "--json"),
        "compare": somebody.run("compare", where, "second", "--json"),
        "compare as markdown": somebody.run("compare", where, "second", "--format", "markdown"),
        "compare as table": somebody.run("compare", where, "second"),
        "list": somebody.run("list", "--json"),
        "check": somebody.run("check", *CHECK, "--json", "--out", str(somebody.folder / "check")),
        "report of a check": somebody.run("report", "check"),
        "explain": somebody.run("explain", "--html", str(somebody.folder / "norms.html")),
    }


def words_in(path: Path) -> bytes:
    """What a file says: unpacked, and of a picture everything but its pixels."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix != ".png":
        return data
    chunks, at = [], 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        chunks += [data[at + 8 : at + 8 + length]] if kind != b"IDAT" else []
        at += 12 + length
    return b" ".join(chunks)


def assert_not_in(private: list[str], text: bytes, where: str) -> None:
    for word in private:
        for form in {word, quote(word), quote(word, safe=""), json.dumps(word)[1:-1]}:
            found = re.search(rf"(?<!\w){re.escape(form)}(?!\w)".encode(), text, re.IGNORECASE)
            assert found is None, f"{form} in {where}: {text[max(0, found.start() - 80) : found.end() + 80]!r}"


def test_nothing_private_is_in_any_file(somebody: Somebody, printed: dict[str, bytes]) -> None:
    del printed
    files = [path for path in somebody.folder.rglob("*") if path.is_file()]

    assert {path.suffix for path in files} >= {".json", ".csv", ".gz", ".md", ".html", ".png", ".svg"}
    assert any("traces" in path.parts for path in files)
    for path in files:
        name = path.relative_to(somebody.folder)
        assert_not_in(somebody.private, str(name).encode(), "the name of a file")
        assert_not_in(somebody.private, words_in(path), str(name))


def test_nothing_private_is_in_what_is_printed_to_be_passed_on(somebody: Somebody, printed: dict[str, bytes]) -> None:
    for name, text in printed.items():
        assert_not_in(somebody.private, text, name)


def test_the_failure_is_told_all_the_same(printed: dict[str, bytes]) -> None:
    results = json.loads(printed["sweep"])["results"]
    reasons = {result["reason"] for result in results if result["status"] == "failed"}

    assert {result["implementation"] for result in results if result["status"] == "failed"} == {"nn-rmsnorm"}
    assert all(reason.startswith("RuntimeError: ~/k.cu '…/k.cu' ") for reason in reasons)
    checked = {check["reason"] for check in json.loads(printed["check"])["checks"] if check["mark"] == "fail"}
    assert len(checked) == 1
    assert all(reason.startswith("RuntimeError: ~/k.cu '…/k.cu' ") for reason in checked)

"""What is left in the end: a few files that can be attached and published, an archive for the folders of a kind."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET
from zipfile import ZIP_DEFLATED, ZipFile

from normbench.gpu_acceptance.parts import Kind, Part
from normbench.private import scrubbed

LOG = "log.txt"


@dataclass(frozen=True, kw_only=True)
class Left:
    """How much lies below a folder."""

    files: int
    bytes: int


def pack(parts: Sequence[Part], out: Path) -> None:
    """Put the run folders of each kind into one archive, and take out of the rest what must not be published."""
    for kind in dict.fromkeys(part.kind for part in parts if part.is_folder):
        folders = [part.path(out) for part in parts if part.kind is kind and part.path(out).is_dir()]
        if folders:
            _archive(folders, out / f"{kind}.zip")
    for part in parts:
        if part.kind is Kind.TESTS and part.path(out).exists():
            _publish_tests(part.path(out))
    if (out / LOG).exists():
        text = (out / LOG).read_text(encoding="utf-8", errors="replace")
        (out / LOG).write_text(scrubbed(text), encoding="utf-8")


def left(out: Path) -> Left:
    """What lies below a folder now."""
    sizes = [path.stat().st_size for path in out.rglob("*") if path.is_file()]
    return Left(files=len(sizes), bytes=sum(sizes))


def _archive(folders: Sequence[Path], target: Path) -> None:
    """The folders go once the archive is whole; it holds no name of a user."""
    with ZipFile(target, "x", ZIP_DEFLATED) as archive:
        for folder in folders:
            for path in sorted(folder.rglob("*")):
                archive.write(path, path.relative_to(target.parent))
    for folder in folders:
        shutil.rmtree(folder)


def _publish_tests(path: Path) -> None:
    """Without the host's name, and with nothing private in what tests said."""
    try:
        tree = ET.parse(path)
    except ET.ParseError:  # ended while it was written
        path.write_text(scrubbed(path.read_text(encoding="utf-8", errors="replace")), encoding="utf-8")
        return
    for element in tree.iter():
        element.attrib.pop("hostname", None)
        element.text = element.text and scrubbed(element.text)
        for name, value in element.attrib.items():
            element.set(name, value if name in ("name", "classname") else scrubbed(value))
    tree.write(path, encoding="utf-8", xml_declaration=True)

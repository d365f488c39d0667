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
    """How much lies below a folder, and what could not be packed."""

    files: int
    bytes: int
    problems: tuple[str, ...] = ()


def pack(parts: Sequence[Part], out: Path) -> tuple[str, ...]:
    """Put the run folders of each kind into one archive, and take out of the rest what must not be published.

    Returns:
        What could not be packed, and is as it was: why.
    """
    problems = []
    for kind in dict.fromkeys(part.kind for part in parts if part.is_folder):
        folders = [part.path(out) for part in parts if part.kind is kind and part.path(out).is_dir()]
        try:
            _archive(folders, out / f"{kind}.zip")
        except OSError as error:
            problems.append(f"{kind}.zip could not be written: {error.strerror}")
    try:
        _publish(parts, out)
    except OSError as error:
        problems.append(f"the log, or what the tests said, could not be written again: {error.strerror}")
    return tuple(problems)


def _publish(parts: Sequence[Part], out: Path) -> None:
    """Take out of the tests' report and of the log what must not be published."""
    for part in parts:
        if part.kind is Kind.TESTS and part.path(out).exists():
            _publish_tests(part.path(out))
    if (out / LOG).exists():
        text = (out / LOG).read_text(encoding="utf-8", errors="replace")
        (out / LOG).write_text(scrubbed(text), encoding="utf-8")


def left(out: Path, problems: tuple[str, ...] = ()) -> Left:
    """What lies below a folder now."""
    sizes = [path.stat().st_size for path in out.rglob("*") if path.is_file()]
    return Left(files=len(sizes), bytes=sum(sizes), problems=problems)


def _archive(folders: Sequence[Path], target: Path) -> None:
    """One archive, which is there as a whole or not at all; the folders go once it is. No name of a user is in it."""
    if not folders:
        return
    partial = target.with_suffix(".partial")
    try:
        with ZipFile(partial, "w", ZIP_DEFLATED, strict_timestamps=False) as archive:
            for path in (path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()):
                archive.write(path, path.relative_to(target.parent))
        partial.replace(target)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
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

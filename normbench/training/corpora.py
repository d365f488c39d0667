"""Text to train on: what every Python has, or a user's files, each with a part held out."""

from __future__ import annotations

import importlib
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from normbench import units
from normbench.errors import UsageError
from normbench.legible import one_line
from normbench.records import Corpus

BLOCK = 4096
"""Bytes of a piece of running text; of code a piece is a file."""

_HELD_OUT_OF = 10
_MOST_CODE = 4 * 2**20
_MOST_TEXT = 2**30
_NO_CODE = frozenset({"test", "tests", "idle_test", "__pycache__", "encodings", "pydoc_data"})
_TABLES = frozenset({"html/entities.py", "stringprep.py"})
_OWN_TEXT = "name a text of your own with --text FILE"


@dataclass(frozen=True, kw_only=True)
class Text:
    """A corpus and its bytes.

    Args:
        corpus: What it is.
        train: What batches are drawn from.
        held_out: What is only evaluated on; nothing of it stands in ``train`` by the way it was cut.
    """

    corpus: Corpus
    train: bytes
    held_out: bytes

    @classmethod
    def of(cls, name: str, pieces: Iterable[bytes]) -> Text:
        """A text of pieces in their order, every tenth held out.

        Raises:
            UsageError: There are fewer than ten.
        """
        train, held_out = bytearray(), bytearray()
        for number, piece in enumerate(pieces, start=1):
            (train if number % _HELD_OUT_OF else held_out).extend(piece)
        if not (train and held_out):
            size = units.size(len(train))
            least = f"{_HELD_OUT_OF - 1} × {BLOCK} bytes"
            raise UsageError(f"{name}: {size} is too little to hold some out", hint=f"more than {least} are needed")
        return cls(
            corpus=Corpus(
                name=name,
                train_bytes=len(train),
                held_out_bytes=len(held_out),
                digest=sha256(train + held_out).hexdigest(),
            ),
            train=bytes(train),
            held_out=bytes(held_out),
        )


def texts(files: Sequence[Path] = ()) -> tuple[Text, ...]:
    """The texts of some files, each a corpus called by its name; the two that every Python has, without any.

    Raises:
        UsageError: A file can't be read, is too small or is there twice; or this Python lacks its own.
    """
    if not files:
        return code(), prose()
    names: list[str] = []
    for file in files:
        names.append(_new_name(one_line(file.name), names))
    if len({file.resolve() for file in files}) < len(files):
        raise UsageError("--text: a file is there twice", hint="name each once")
    found = (Text.of(name, blocks(_read(file))) for name, file in zip(names, files, strict=True))
    return tuple(replace(text, corpus=replace(text.corpus, is_file=True)) for text in found)


def require_same(texts: Sequence[Text], corpora: Sequence[Corpus]) -> None:
    """Make sure of having the text that a run was begun with.

    Raises:
        UsageError: It is another, or there are more or fewer.
    """
    found = [text.corpus for text in texts]
    other = [corpus.name for corpus in corpora if corpus not in found]
    if other:
        raise UsageError(
            f"{', '.join(other)}: not here as it was when the run was begun",
            hint="bring the same --text files and the same Python, or begin a new run",
        )
    if found != list(corpora):
        raise UsageError(
            f"{', '.join(corpus.name for corpus in found)}: not the texts that the run was begun with",
            hint=f"bring {', '.join(corpus.name for corpus in corpora)} in this order",
        )


def require_length(texts: Sequence[Text], context: int) -> None:
    """Make sure that a window of a context and the byte after it fits into each part of each text.

    Raises:
        UsageError: One is shorter.
    """
    for text in texts:
        shortest = min(text.corpus.train_bytes, text.corpus.held_out_bytes)
        if shortest <= context:
            raise UsageError(
                f"{text.corpus.name}: holds {shortest} bytes out, too few for a context of {context}",
                hint="name a longer text, or a shorter --context",
            )


def code(folder: Path | None = None) -> Text:
    """The source of Python's standard library: the first 4 MiB by path, without tests and tables.

    Args:
        folder: Where the library is; where this Python has it, without one.

    Raises:
        UsageError: It has no source there, as where it was installed as an archive.
    """
    folder = folder or Path(sysconfig.get_path("stdlib"))
    try:
        sources = list(_first(_sources(folder), _MOST_CODE))
    except OSError as error:
        raise UsageError(f"the standard library's source can't be read: {error.strerror}", hint=_OWN_TEXT) from error
    if len(sources) < _HELD_OUT_OF:
        raise UsageError("this Python has no source of its standard library to train on", hint=_OWN_TEXT)
    return Text.of("code", sources)


def prose() -> Text:
    """What ``help()`` says of the language: the topics in pydoc, each paragraph once.

    Some topics are parts of others; a paragraph held out would else be one that was trained on.

    Raises:
        UsageError: This Python has no topics.
    """
    try:
        topics = importlib.import_module("pydoc_data.topics").topics
    except (ImportError, AttributeError) as error:
        raise UsageError("this Python has no pydoc_data.topics to train on", hint=_OWN_TEXT) from error
    whole = "\n\n".join(_unrepeated(topics[name] for name in sorted(topics)))
    return Text.of("prose", blocks(whole.encode()))


def blocks(data: bytes) -> Iterator[bytes]:
    """Pieces of 4096 bytes, the last one shorter."""
    return (data[start : start + BLOCK] for start in range(0, len(data), BLOCK))


def _unrepeated(topics: Iterable[str]) -> Iterator[str]:
    """The paragraphs that were not there before in other topics, other indents or other line ends."""
    seen = set()
    for topic in topics:
        for paragraph in topic.replace("\r\n", "\n").split("\n\n"):
            words = tuple(paragraph.split())
            if words and words not in seen:
                seen.add(words)
                yield paragraph.strip("\n")


def _sources(folder: Path) -> Iterator[bytes]:
    """The contents of a library's files by path: what belongs to Python, and not what was installed beside it."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.py")}
    for name in sorted(found):
        parts = name.removesuffix(".py").split("/")
        if parts[0] in sys.stdlib_module_names and not _NO_CODE.intersection(parts) and name not in _TABLES:
            yield found[name].read_bytes().replace(b"\r\n", b"\n")


def _first(pieces: Iterable[bytes], most: int) -> Iterator[bytes]:
    """The pieces that are not empty, until the next would be too much."""
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            return
        if piece:
            yield piece


def _read(file: Path) -> bytes:
    try:
        if not file.is_file():
            raise UsageError(f"--text {file}: is no file", hint="name a file of text")
        if file.stat().st_size > _MOST_TEXT:
            raise UsageError(f"--text {file}: is larger than {units.size(_MOST_TEXT)}", hint="name a part of it")
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"--text {file}: can't be read: {error.strerror}", hint="name a file of text") from error


def _new_name(name: str, taken: Sequence[str]) -> str:
    """A name, numbered where another has it."""
    names = (name, *(f"{name} ({number})" for number in range(2, len(taken) + 2)))
    return next(one for one in names if one not in taken)

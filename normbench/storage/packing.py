"""Samples packed and unpacked, a piece at a time: what a small file unpacks to may be larger than the memory."""

from __future__ import annotations

import gzip
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

from normbench.storage.files import opened, too_large, write_parts
from normbench.storage.limits import MOST_SAMPLES_BYTES
from normbench.storage.table import unreadable

_PIECE = 1 << 20


def pack(source: Path, target: Path) -> None:
    """Gzip a file; the same content gives the same bytes."""
    with source.open("rb") as plain, gzip.GzipFile(target, "wb", mtime=0) as packed:
        shutil.copyfileobj(plain, packed)


def unpack(source: Path, target: Path) -> None:
    """Unpack a gzipped text file as a whole or not at all.

    Raises:
        StorageError: It is damaged, no text, or unpacks to more than ``MOST_SAMPLES_BYTES``.
    """
    try:
        write_parts(target, _pieces(source))
    except (EOFError, zlib.error, UnicodeDecodeError) as error:
        raise unreadable(source, error) from error


def _pieces(source: Path) -> Iterator[str]:
    total = 0
    try:
        with opened(source) as file, gzip.GzipFile(fileobj=file) as packed:
            while piece := packed.read(_PIECE):
                total += len(piece)
                if total > MOST_SAMPLES_BYTES:
                    raise too_large(MOST_SAMPLES_BYTES)
                piece += packed.readline(_PIECE)  # so that no character is cut
                yield piece.decode("utf-8")
    except OSError as error:
        raise unreadable(source, error) from error

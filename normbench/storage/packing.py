"""A file packed by gzip and unpacked: one of the two is always there and whole, the plain one where both are.

Both are done a piece at a time: what a small file unpacks to may be larger than the memory.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from normbench.storage.files import opened, remove, too_large, write_whole
from normbench.storage.limits import MOST_SAMPLES_BYTES
from normbench.storage.table import unreadable

_PIECE = 1 << 20
_GZIP = 16 + zlib.MAX_WBITS


def pack(plain: Path, packed: Path) -> None:
    """Put a packed file in the place of a plain one; the same content gives the same bytes at any time.

    Raises:
        StorageError: One can't be read or the other can't be written; the plain one is still there then.
    """
    write_whole(packed, _packed(plain))
    remove(plain)


def unpack(packed: Path, plain: Path) -> None:
    """Put the plain file in the place of a packed one.

    Raises:
        StorageError: The packed one is damaged, no text, or unpacks to more than ``MOST_SAMPLES_BYTES``, or the
            other can't be written; the packed one is still there then.
    """
    write_whole(plain, _unpacked(packed))
    remove(packed)


def _packed(plain: Path) -> Iterator[bytes]:
    packer = zlib.compressobj(9, wbits=_GZIP)
    try:
        with opened(plain) as file:
            while piece := file.read(_PIECE):
                yield packer.compress(piece)
    except OSError as error:
        raise unreadable(plain, error) from error
    yield packer.flush()


def _unpacked(packed: Path) -> Iterator[bytes]:
    total = 0
    try:
        with opened(packed) as file, gzip.GzipFile(fileobj=file) as unpacked:
            while piece := unpacked.read(_PIECE):
                piece += unpacked.readline(_PIECE)  # so that no character is cut
                total += len(piece)
                if total > MOST_SAMPLES_BYTES:
                    raise too_large(MOST_SAMPLES_BYTES)
                piece.decode("utf-8")
                yield piece
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise unreadable(packed, error) from error

"""A file packed by gzip and unpacked: one of the two is always there and whole, the plain one where both are."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from normbench.errors import StorageError
from normbench.storage.files import remove, write_whole

_BLOCK = 1 << 20
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
        StorageError: The packed one is damaged, or the other can't be written; the packed one is still there then.
    """
    write_whole(plain, _unpacked(packed))
    remove(packed)


def _packed(plain: Path) -> Iterator[bytes]:
    packer = zlib.compressobj(9, wbits=_GZIP)
    try:
        with plain.open("rb") as file:
            while block := file.read(_BLOCK):
                yield packer.compress(block)
    except OSError as error:
        raise StorageError(f"{plain}: can't be read: {error.strerror}") from error
    yield packer.flush()


def _unpacked(packed: Path) -> Iterator[bytes]:
    try:
        with gzip.open(packed) as file:
            while block := file.read(_BLOCK):
                yield block
    except (OSError, EOFError, zlib.error) as error:
        raise StorageError(f"{packed}: can't be read: {error}") from error

"""The state of a training run on disk: written whole or not at all, read only where it is what was written."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from normbench.errors import StorageError

_DIGEST = 64

_MOST_BYTES = 64 * 2**30
"""No state is larger: what claims to be is not read."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A place for one state.

    Args:
        path: A file in a folder that exists; None keeps nothing.
    """

    path: Path | None

    def write(self, key: str, state: Mapping[str, Any]) -> None:
        """Replace what is there.

        Args:
            key: What the state belongs to.
            state: Tensors, numbers, texts, lists and dicts.

        Raises:
            StorageError: It can't be written.
        """
        if self.path is None:
            return
        buffer = io.BytesIO()
        torch.save({"key": key, "state": state}, buffer)
        payload = buffer.getbuffer()
        # The name is that of every half-written file of a run folder, where readers pass over it.
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        try:
            with temporary.open("wb") as file:
                file.write(sha256(payload).hexdigest().encode())
                file.write(payload)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
        except OSError as error:
            raise StorageError(
                f"{self.path}: can't be written: {error.strerror}", hint="make room there, and go on with --resume"
            ) from error
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def read(self, key: str) -> Mapping[str, Any] | None:
        """The state that belongs to ``key``, on the CPU; whatever else is there is removed."""
        if self.path is None:
            return None
        found = _read(self.path)
        if found is not None and found["key"] == key:
            state: Mapping[str, Any] = found["state"]
            return state
        self.remove()
        return None

    def remove(self) -> None:
        """Have nothing there any more."""
        if self.path is not None:
            with suppress(OSError):  # what stays is passed over: it belongs to a run that is done
                self.path.unlink(missing_ok=True)


def _read(path: Path) -> Mapping[str, Any] | None:
    """What was written; None where nothing was, or where its digest says that it is something else now."""
    try:
        if not path.is_file():  # a pipe would be waited for
            return None
        if path.stat().st_size > _MOST_BYTES:
            return None
        data = memoryview(path.read_bytes())
        if sha256(data[_DIGEST:]).hexdigest().encode() != data[:_DIGEST]:
            return None
        found: Mapping[str, Any] = torch.load(io.BytesIO(data[_DIGEST:]), map_location="cpu", weights_only=True)
    except Exception:  # whatever torch makes of what is no state: it is none
        return None
    return found if isinstance(found, dict) and found.keys() == {"key", "state"} else None

"""Shows traces in TensorBoard with PyTorch's profiler plugin, and says how to see them without."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path

from normbench.errors import IncompleteError, StorageError

_NEEDED = {"tensorboard": "tensorboard", "torch_tb_profiler": "torch-tb-profiler"}
"""Modules, and the packages that bring them."""


def command(traces: Path, *, port: int | None = None, host: str = "127.0.0.1") -> list[str]:
    """The command that shows these traces; the plugin is found by TensorBoard itself."""
    words = [sys.executable, "-m", "tensorboard.main", "--logdir", str(traces), "--host", host]
    return [*words, "--port", str(port)] if port is not None else words


def serve_traces(run: Path) -> None:
    """Show the traces of a run folder until Ctrl-C.

    Raises:
        StorageError: There are none.
        IncompleteError: TensorBoard or the plugin is missing, or ended by itself; the traces are still there.
    """
    traces = run / "traces"
    if not any(traces.rglob("*.json.gz")):
        raise StorageError(f"{traces}: holds no traces", hint="normbench profile makes them")
    print(f"each file below {traces}/ opens in https://ui.perfetto.dev too, without TensorBoard", file=sys.stderr)
    missing = [package for module, package in _NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise IncompleteError(
            f"{' and '.join(missing)}: not installed; the traces are in {traces}",
            hint=f"pip install {' '.join(missing)}",
        )
    signal.signal(signal.SIGINT, signal.default_int_handler)  # so that TensorBoard is ended as well
    done = subprocess.run(command(traces), check=False)
    if done.returncode not in (0, -2, 130):  # Ctrl-C is how it is meant to end
        raise IncompleteError(
            f"TensorBoard ended with exit code {done.returncode}; the traces are in {traces}",
            hint="its own message is above; tensorboard 2.21 or newer is needed with setuptools 82 or newer",
        )

"""What names say: which formula code is of; and how things are called that nobody has named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from normbench.records import Op

PREFIX = "normbench_brought_"
"""How the packages are called that folders of users' code are imported as; a number follows."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What an implementation can be called."""
_WORDS = re.compile(r"RMS(?=norm)|[A-Za-z]\d+(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+(?:[a-z](?![a-z]))?")
_PACKAGE = re.compile(rf"\b{PREFIX}\d+\.")
_FOLDER = re.compile(rf"\b{PREFIX}\d+\b")
_NORMS = {"rmsnorm": "rms", "layernorm": "ln"}
"""The two formulas as one word, and the word that says as much by itself."""
_OF_NORMS = frozenset({"add", "norm", "normalization", "layer", *_NORMS, *_NORMS.values()})
_LONGEST = 64


def op_of(*names: str) -> Op | None:
    """The formula of the first name that tells one; None where no name does.

    ``fused_rms_norm`` is an RMSNorm, ``AddLayerNorm`` is the residual add and a LayerNorm in one.
    """
    for name in names:
        said = words(name)
        norm = _norm(said)
        if norm is not None:
            text = f"add-{norm}" if "add" in said else norm
            return next((op for op in Op if op == text), None)
    return None


def _norm(said: Sequence[str]) -> str | None:
    """``layer`` alone is one of a network; ``norms`` holds an r, an m and an s by chance."""
    pairs = [f"{first}{second}" for first, second in pairwise(said) if first in ("rms", "layer")]
    for norm, short in _NORMS.items():
        if short in said or any(norm in word for word in (*said, *pairs)):
            return norm
    return None


def provider_of(name: str, op: Op) -> str:
    """Who computes: what stands before the formula in ``provider-op``; the whole name where that is not its end."""
    return name.removesuffix(f"-{op}") or name


def called(where: str, attribute: str, op: Op) -> str:
    """``provider-op`` for what has no name yet: ``kernels`` and ``FusedRMSNorm`` give ``kernels-fused-rmsnorm``."""
    said = [word for word in (*words(where), *words(attribute)) if word not in _OF_NORMS]
    provider = "-".join(dict.fromkeys(said) or ["own"])
    return f"{provider[: _LONGEST - len(f'-{op}')].rstrip('-')}-{op}"


def words(name: str) -> Sequence[str]:
    """The words of a name, in small letters: of ``FusedRMSNorm2d`` they are fused, rms, norm and 2d."""
    return [word.lower() for word in _WORDS.findall(name)]


def without_packages(text: str) -> str:
    """A text in which the modules of users' folders are called as users call them."""
    return _FOLDER.sub("its folder", _PACKAGE.sub("", text))

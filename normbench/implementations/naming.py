"""What a name says: which formula code is of, and what an implementation is called that nobody has named."""

from __future__ import annotations

import re
from collections.abc import Sequence

from normbench.records import Op

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_RMS = frozenset({"rms", "rmsnorm"})
_LAYER = frozenset({"layer", "layernorm", "ln"})
_OF_NORMS = frozenset({"norm", *_RMS, *_LAYER})


def op_of(*names: str) -> Op | None:
    """The formula of the first name that tells one; None where no name does.

    ``fused_rms_norm`` is an RMSNorm, ``AddLayerNorm`` is the residual add and a LayerNorm in one.
    """
    adds = any("add" in words(name) for name in names)
    for name in names:
        norm = _norm(words(name))
        if norm is not None:
            text = f"add-{norm}" if adds else norm
            return next((op for op in Op if op == text), None)
    return None


def _norm(said: Sequence[str]) -> str | None:
    for norm, known in (("rmsnorm", _RMS), ("layernorm", _LAYER)):
        if any(word in known or norm in word for word in said):
            return norm
    return None


def provider_of(name: str, op: Op) -> str:
    """Who computes: what stands before the formula in ``provider-op``; the whole name where that is not its end."""
    return name.removesuffix(f"-{op}") or name


def called(where: str, attribute: str, op: Op) -> str:
    """``provider-op`` for what has no name yet: ``kernels`` and ``FusedRMSNorm`` give ``kernels-fused-rmsnorm``."""
    said = [word for word in (*words(where), *words(attribute)) if word not in _OF_NORMS and word != "add"]
    return "-".join([*(dict.fromkeys(said) or ["own"]), str(op)])


def words(name: str) -> Sequence[str]:
    """The words of a name, in small letters: of ``FusedRMSNorm`` they are fused, rms and norm."""
    return [word.lower() for word in _WORDS.findall(name)]

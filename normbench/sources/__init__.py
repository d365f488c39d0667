"""From the words that name a user's implementation to the place where its code lies: see ``locating``."""

from normbench.sources.words import asked_for, formula, is_spec, parts

__all__ = ["asked_for", "formula", "is_spec", "parts"]

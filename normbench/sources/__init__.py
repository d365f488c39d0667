"""From the words that name a user's implementation to the place where its code lies on this machine."""

from normbench.sources.locating import located
from normbench.sources.words import asked_for, is_spec, parts

__all__ = ["asked_for", "is_spec", "located", "parts"]

"""What every test shares: hypothesis without a deadline, since the machine's speed is no property of the code."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("normbench", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("normbench")

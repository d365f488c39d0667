"""Studies of the tool itself: what its intervals are worth, and how it compares with other ways to time."""

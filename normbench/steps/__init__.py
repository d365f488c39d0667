"""Training steps of a small model with one norm or another: checked in place, timed by the sweep's engine."""

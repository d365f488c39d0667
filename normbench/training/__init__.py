"""Training a small model with one norm or another: on which text, from which seeds, and how far it got."""

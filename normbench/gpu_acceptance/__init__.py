"""``python -m normbench.gpu_acceptance``: everything that only a GPU can show, in one command of a few minutes."""

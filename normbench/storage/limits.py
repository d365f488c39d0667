"""What a reader takes at most: far more than a run needs, and little enough that a file can't take the machine."""

MOST_HEADER_BYTES = 16 * 2**20
"""Of ``run.json``; a run of ten thousand widths has a thirtieth of it."""

MOST_TABLE_BYTES = 2**30
"""Of each CSV file but the samples."""

MOST_SAMPLES_BYTES = 16 * 2**30
"""Of ``samples.csv``, or of what ``samples.csv.gz`` unpacks to: a hundred million samples."""

MOST_LINE_BYTES = 2**20
"""Of a line of a CSV file."""

MOST_TEXT = 10_000
"""Characters of a text in any file; a longer one is cut when it is written."""

MOST_NAME = 200
"""Characters of an implementation's name: it stands in every row, and in names of files."""

MOST_DEPTH = 16
"""Of lists and objects within each other in ``run.json``."""

MOST_INTEGER = 2**64
"""No number without a point in ``run.json`` is beyond it, on either side of 0."""

LEAST_S, MOST_S = 1e-15, 1e9
"""No time is shorter or longer, in seconds: a number beyond is none."""

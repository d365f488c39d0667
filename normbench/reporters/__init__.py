"""A run in, a report out: one file each. Reporters return text or bytes; they open no file and know no command."""

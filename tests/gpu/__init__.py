"""What only a real GPU can show, and a rehearsal of it that runs anywhere."""

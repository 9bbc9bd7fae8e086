"""The schema's history. Revisions are numbered 0001, 0002, … in one line; a landed one is never edited."""

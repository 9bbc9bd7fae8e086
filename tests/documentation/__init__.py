"""The documentation site: complete, connected, the same in both languages, and served."""

"""An application's payments: the list, one with its timeline, and the export."""

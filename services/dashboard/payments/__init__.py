"""An application's payments: the list, each payment with its timeline, and the CSV export."""

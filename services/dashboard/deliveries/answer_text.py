"""What a receiver answered, as text that is safe to look at: it can be anything, and is never interpreted."""

from shared.platform.text import harmless

__all__ = ["harmless"]

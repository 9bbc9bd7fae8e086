"""What a receiver answered, as text that is safe to look at: it can be anything, and is never interpreted."""

from shared.platform.sanitize import sanitize_text

__all__ = ["sanitize_text"]

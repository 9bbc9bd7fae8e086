"""Programs that use Mizan as a merchant does: from outside."""

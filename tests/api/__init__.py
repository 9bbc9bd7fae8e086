"""The API service."""

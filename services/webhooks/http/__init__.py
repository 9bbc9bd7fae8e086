"""The HTTP client: libcurl with our own DNS look-ups and our own epoll."""

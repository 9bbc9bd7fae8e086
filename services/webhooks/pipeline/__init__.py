"""The delivery pipeline: look up each delivery, queue it for its application, send it, record the try."""

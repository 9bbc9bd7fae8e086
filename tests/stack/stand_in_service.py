"""A stand-in for a service: responds to /readyz, writes a log line, and returns its environment."""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

RETURNED_VARIABLES = (
    "DATABASE_URL",
    "DATABASE_URL_FILE",
    "KAFKA_BOOTSTRAP_SERVERS",
    "KAFKA_CLIENT_SASL_USERNAME",
    "KAFKA_REPLICATION_FACTOR",
    "MIZAN_ENV",
    "MIZAN_STACK_DIR",
)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        given = {name: os.environ.get(name) for name in RETURNED_VARIABLES}  # noqa: TID251 - a stand-in has no settings module
        body = json.dumps(given).encode()
        self.send_response(200 if self.path in {"/readyz", "/given"} else 404)
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    port = int(os.environ["HTTP_PORT"])  # noqa: TID251 - a stand-in has no settings module
    server = HTTPServer(("127.0.0.1", port), Handler)
    print(f"{sys.argv[1]} listens on {port}", flush=True)
    server.serve_forever()

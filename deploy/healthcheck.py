#!/usr/bin/env python3
"""The health check of a container: succeeds if its service responds to /readyz with 200."""

import http.client
import os
import sys

connection = http.client.HTTPConnection("127.0.0.1", int(os.environ["HTTP_PORT"]), timeout=9)  # noqa: TID251
try:
    connection.request("GET", "/readyz")
    response = connection.getresponse()
    sys.stdout.write(response.read().decode(errors="replace"))
except (OSError, http.client.HTTPException) as error:
    sys.exit(f"no response: {error}")
sys.exit(0 if response.status == http.HTTPStatus.OK else 1)

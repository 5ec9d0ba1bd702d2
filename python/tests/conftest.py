"""A running service and engine, whose addresses `test/python/python-package.test.ts` gives, and a network that loses what it is told to."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

SERVICE = os.environ["MEMPREFIX_URL"]
ENGINE = os.environ["OPENAI_BASE_URL"]
FACTS = ["Ana is vegetarian.", "Ana is in Lisbon this week.", "Ana loves modern art."]


def found(turn: int) -> dict[str, object]:
    """A search's result, as Mem0 answers it: one memory more in each turn, the newest first."""
    return {"results": [{"id": f"m{at}", "memory": fact} for at, fact in enumerate(FACTS[: turn + 1])][::-1]}


@pytest.fixture
def user() -> str:
    return f"ana-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def network() -> Iterator[Callable[[Callable[[int], str]], tuple[str, list[bytes]]]]:
    """Starts a server in front of the service. `loses(n)` says what it loses of the nth request: its request, its answer, or nothing."""
    servers: list[ThreadingHTTPServer] = []

    def start(loses: Callable[[int], str]) -> tuple[str, list[bytes]]:
        bodies: list[bytes] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                bodies.append(body)
                lost = loses(len(bodies))
                headers = {"content-type": "application/json"}
                answer = None if lost == "request" else httpx.post(SERVICE + self.path, content=body, headers=headers)
                self.close_connection = True
                if answer is None or lost == "answer":
                    return
                self.send_response(answer.status_code)
                self.send_header("content-length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

            def log_message(self, *_args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}", bodies

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()

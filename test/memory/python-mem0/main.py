"""
Mem0's own Memory behind the routes of Mem0's REST server that memprefix calls. This is not that server: it stands in for it, with its environment
variables, where the server's source, which is in no package, cannot be reached.
"""

import os
import secrets
from typing import Any

from fastapi import Body, Depends, FastAPI, Header, HTTPException
from mem0 import Memory

given = os.environ
memory = Memory.from_config(
    {
        "vector_store": {
            "provider": "pgvector",
            "config": {
                "host": given["POSTGRES_HOST"],
                "port": int(given["POSTGRES_PORT"]),
                "dbname": given["POSTGRES_DB"],
                "user": given["POSTGRES_USER"],
                "password": given["POSTGRES_PASSWORD"],
                "collection_name": "memories",
            },
        },
        "history_db_path": given["HISTORY_DB_PATH"],
    }
)


def authorize(x_api_key: str = Header("")) -> None:
    if not secrets.compare_digest(x_api_key, given["ADMIN_API_KEY"]):
        raise HTTPException(401, "Invalid API key.")


app = FastAPI(dependencies=[Depends(authorize)])
Fields = dict[str, Any]


def told(call, *args, **options):
    """What Mem0 refuses is the client's fault; what it does not find, not."""
    try:
        return call(*args, **options)
    except ValueError as error:
        raise HTTPException(404 if "not found" in str(error) else 400, str(error)) from error


@app.post("/memories")
def add(asked: Fields = Body()):
    return told(memory.add, **asked)


@app.post("/search")
def search(asked: Fields = Body()):
    taken = ("query", "filters", "top_k", "threshold", "show_expired")
    return told(memory.search, **{name: asked[name] for name in taken if name in asked})


@app.get("/memories/{memory_id}")
def get(memory_id: str):
    return told(memory.get, memory_id)


@app.put("/memories/{memory_id}")
def update(memory_id: str, asked: Fields = Body()):
    options = {name: asked[name] for name in ("metadata", "expiration_date") if name in asked}
    return told(memory.update, memory_id, **options, **({"data": asked["text"]} if "text" in asked else {}))


@app.delete("/memories/{memory_id}")
def delete(memory_id: str):
    return told(memory.delete, memory_id)


@app.delete("/memories")
def delete_all(user_id: str):
    return told(memory.delete_all, user_id=user_id)


@app.post("/reset")
def reset():
    return told(memory.reset)

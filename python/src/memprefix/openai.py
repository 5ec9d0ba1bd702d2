"""Chats of OpenAI's client, through memprefix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from .client import service_url


class _Client(Protocol):
    def with_options(self, *, base_url: str, default_headers: Mapping[str, str]) -> Any: ...


C = TypeVar("C", bound=_Client)


def wrap(
    client: C,
    *,
    user_id: str,
    conversation_id: str | None = None,
    agent_id: str | None = None,
    url: str | None = None,
    api_key: str | None = None,
) -> C:
    """A copy of an `OpenAI` or `AsyncOpenAI` client that calls its engine through memprefix, for one user.

    Sets the base URL and headers, and nothing else: key, time-out and retries are the client's. Without `conversation_id` every prompt is a
    single one. `api_key` is memprefix's, where it has keys.
    """
    names = {
        "x-memprefix-user": user_id,
        "x-memprefix-conversation": conversation_id,
        "x-memprefix-agent": agent_id,
        "x-api-key": api_key,
    }
    headers = {name: value for name, value in names.items() if value is not None}
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"{name} holds printable ASCII; name others in the base URL (docs/identity.md)")
    wrapped: C = client.with_options(base_url=f"{service_url(url)}/v1", default_headers=headers)
    return wrapped

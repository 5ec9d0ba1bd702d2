"""Clients of a memprefix service: one that waits, one for asyncio. Both send the same calls."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, cast
from urllib.parse import quote

import httpx
from typing_extensions import Self, Unpack

from . import types

DEFAULT_URL = "http://127.0.0.1:4600"


class MemprefixError(Exception):
    """A call that has no answer.

    `status` is None if the service did not answer. `problem` names each invalid field; it is None if the answer is not memprefix's.
    """

    def __init__(self, message: str, status: int | None = None, problem: types.Problem | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.problem = problem


@dataclass(frozen=True)
class _Call:
    method: str
    path: str
    #: A field of every answer: JSON without it is another server's.
    answers: str
    body: Mapping[str, Any] | None = None
    #: Whether sending it twice has the effect of sending it once.
    is_repeatable: bool = True
    has_timeout: bool = True

    def request(self, client: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        content = None if self.body is None else json.dumps(self.body, default=_plain, ensure_ascii=False).encode()
        request = client.build_request(self.method, self.path, content=content)
        if not self.has_timeout:
            request.extensions["timeout"] = httpx.Timeout(None).as_dict()
        return request

    def may_repeat(self, error: httpx.TransportError) -> bool:
        return self.is_repeatable and not isinstance(error, httpx.TimeoutException)

    def failure(self, error: httpx.TransportError) -> MemprefixError:
        return MemprefixError(f"{self.method} {self.path} had no answer: {error or type(error).__name__}")

    def answer(self, response: httpx.Response) -> Any:
        what = f"{self.method} {self.path} was answered {response.status_code}"
        try:
            answer = response.json()
        except ValueError:
            answer = None
        given = answer if isinstance(answer, dict) else {}
        if response.is_success and self.answers in given:
            return given
        if response.is_success or not {"title", "status"} <= given.keys():
            raise MemprefixError(f"{what}, but not by memprefix: is the url right?", response.status_code)
        problem = cast(types.Problem, given)
        # The detail names each wrong field.
        raise MemprefixError(f"{what}: {problem.get('detail', problem['title'])}", problem["status"], problem)


def _plain(value: Any) -> Any:
    """Messages of OpenAI's client, which are Pydantic models."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_unset=True)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _named(request: Mapping[str, Any]) -> dict[str, Any]:
    """With an id before the first try: a second one gets the answer that the first one stored."""
    return {
        "request_id": f"req-{uuid.uuid4().hex}",
        **{name: value for name, value in request.items() if value is not None},
    }


def _compose(request: types.ComposeRequest) -> _Call:
    return _Call("POST", "/compose", "messages", _named(request))


def _batch(batch: types.Batch) -> _Call:
    requests = [_named(request) for request in batch["requests"]]
    return _Call("POST", "/compose/batch", "answers", {**batch, "requests": requests}, has_timeout=False)


def _feedback(report: types.FeedbackRequest) -> _Call:
    return _Call("POST", "/feedback", "request_id", cast(Mapping[str, Any], report))


def _add(request: types.AddRequest) -> _Call:
    return _Call("POST", "/memories", "results", cast(Mapping[str, Any], request), is_repeatable=False)


def _forget(user_id: str, memory_id: str) -> _Call:
    query = f"user_id={quote(user_id, '')}&memory_id={quote(memory_id, '')}"
    return _Call("DELETE", f"/user/memory?{query}", "memory_id")


def _forget_user(user_id: str) -> _Call:
    return _Call("DELETE", f"/user?user_id={quote(user_id, '')}", "user_id")


def _options(url: str | None, api_key: str | None, timeout: float) -> dict[str, Any]:
    key = api_key or os.environ.get("MEMPREFIX_API_KEY")
    return {
        "base_url": service_url(url),
        "timeout": timeout,
        "headers": {"content-type": "application/json", **({"x-api-key": key} if key else {})},
    }


def service_url(url: str | None) -> str:
    return (url or os.environ.get("MEMPREFIX_URL") or DEFAULT_URL).rstrip("/")


class Memprefix:
    """A client that waits for each answer. Threads can share it. Every method raises `MemprefixError`.

    `url` is by default `MEMPREFIX_URL` of the environment, else http://127.0.0.1:4600; `api_key` is `MEMPREFIX_API_KEY`. `timeout` is in
    seconds; a batch has none. A call that lost its connection is sent again once, if that is safe.
    """

    def __init__(self, url: str | None = None, api_key: str | None = None, *, timeout: float = 30.0) -> None:
        self._http = httpx.Client(**_options(url, api_key, timeout))

    def compose(self, **request: Unpack[types.ComposeRequest]) -> types.ComposeAnswer:
        """Composes a prompt. Send its `messages` to the engine, with the `fields` and `headers` of its `engine`."""
        return cast(types.ComposeAnswer, self._send(_compose(request)))

    def batch(self, **batch: Unpack[types.Batch]) -> types.BatchResult:
        """Composes many prompts, in the order in which to send them."""
        return cast(types.BatchResult, self._send(_batch(batch)))

    def feedback(self, **report: Unpack[types.FeedbackRequest]) -> types.FeedbackAnswer:
        """Reports what the engine found cached of a composed prompt."""
        return cast(types.FeedbackAnswer, self._send(_feedback(report)))

    def add(self, **request: Unpack[types.AddRequest]) -> types.AddAnswer:
        """Stores memories in the service's memory source."""
        return cast(types.AddAnswer, self._send(_add(request)))

    def forget(self, *, user_id: str, memory_id: str) -> types.ForgottenMemory:
        """Forgets a memory for good, here and in a memory source of the service's own."""
        return cast(types.ForgottenMemory, self._send(_forget(user_id, memory_id)))

    def forget_user(self, *, user_id: str) -> types.ForgottenUser:
        """Deletes everything that is stored of a user."""
        return cast(types.ForgottenUser, self._send(_forget_user(user_id)))

    def _send(self, call: _Call) -> Any:
        request = call.request(self._http)
        try:
            try:
                response = self._http.send(request)
            except httpx.TransportError as error:
                if not call.may_repeat(error):
                    raise
                response = self._http.send(request)
        except httpx.TransportError as error:
            raise call.failure(error) from error
        return call.answer(response)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncMemprefix:
    """`Memprefix` for asyncio."""

    def __init__(self, url: str | None = None, api_key: str | None = None, *, timeout: float = 30.0) -> None:
        self._http = httpx.AsyncClient(**_options(url, api_key, timeout))

    async def compose(self, **request: Unpack[types.ComposeRequest]) -> types.ComposeAnswer:
        """See `Memprefix.compose`."""
        return cast(types.ComposeAnswer, await self._send(_compose(request)))

    async def batch(self, **batch: Unpack[types.Batch]) -> types.BatchResult:
        """See `Memprefix.batch`."""
        return cast(types.BatchResult, await self._send(_batch(batch)))

    async def feedback(self, **report: Unpack[types.FeedbackRequest]) -> types.FeedbackAnswer:
        """See `Memprefix.feedback`."""
        return cast(types.FeedbackAnswer, await self._send(_feedback(report)))

    async def add(self, **request: Unpack[types.AddRequest]) -> types.AddAnswer:
        """See `Memprefix.add`."""
        return cast(types.AddAnswer, await self._send(_add(request)))

    async def forget(self, *, user_id: str, memory_id: str) -> types.ForgottenMemory:
        """See `Memprefix.forget`."""
        return cast(types.ForgottenMemory, await self._send(_forget(user_id, memory_id)))

    async def forget_user(self, *, user_id: str) -> types.ForgottenUser:
        """See `Memprefix.forget_user`."""
        return cast(types.ForgottenUser, await self._send(_forget_user(user_id)))

    async def _send(self, call: _Call) -> Any:
        request = call.request(self._http)
        try:
            try:
                response = await self._http.send(request)
            except httpx.TransportError as error:
                if not call.may_repeat(error):
                    raise
                response = await self._http.send(request)
        except httpx.TransportError as error:
            raise call.failure(error) from error
        return call.answer(response)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.aclose()

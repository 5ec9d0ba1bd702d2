"""A hook for agents of LangChain and LangGraph, and for a graph's own nodes. Needs `langchain`: `pip install "memprefix[langchain]"`."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from .client import Memprefix


def _warn(error: Exception) -> None:
    logging.getLogger("memprefix").warning("sent unmodified: %s", error)


@dataclass(frozen=True)
class Prompt:
    """Messages for a model, and the engine's fields and headers to send along."""

    messages: list[BaseMessage]
    fields: Mapping[str, Any]
    headers: Mapping[str, str]
    _report: Callable[[Sequence[Any]], None]

    def report(self, *answers: BaseMessage) -> None:
        """Reports the usage of the model's answer, if it says what was cached. Never raises."""
        self._report(answers)


def compose_messages(
    memprefix: Memprefix,
    messages: Sequence[BaseMessage],
    *,
    user_id: str | None,
    on_error: Callable[[Exception], None] = _warn,
    **fields: Any,
) -> Prompt:
    """Composes the messages of a node. `fields` are those of `Memprefix.compose`.

    Never raises: without a user, or after a failure, the prompt has the given messages.
    """
    plain = Prompt(list(messages), {}, {}, lambda _answers: None)
    if user_id is None:
        return plain
    try:
        chat = [_chat_message(message) for message in messages]
        composed = memprefix.compose(user_id=user_id, messages=chat, format="chat", **fields)

        def report(answers: Sequence[Any]) -> None:
            usage = _usage(answers)
            cached = usage.get("input_token_details", {}).get("cache_read")
            if cached is None:
                return
            try:
                memprefix.feedback(
                    user_id=user_id,
                    agent_id=fields.get("agent_id"),
                    request_id=composed["request_id"],
                    prompt_tokens=usage["input_tokens"],
                    cached_tokens=cached,
                )
            except Exception as error:
                on_error(error)

        engine = composed["engine"]
        return Prompt(_restored(messages, chat, composed["messages"]), engine["fields"], engine["headers"], report)
    except Exception as error:
        on_error(error)
        return plain


def _usage(answers: Sequence[Any]) -> Mapping[str, Any]:
    used = [getattr(answer, "usage_metadata", None) for answer in answers]
    return next((usage for usage in reversed(used) if usage), {})


class MemprefixMiddleware(AgentMiddleware[Any, Any, Any]):
    """Composes the prompt of every model call of `create_agent`, and reports its usage.

    It changes the request alone: the agent's state and checkpoints have no memories. Put it last, so that it sees what other middlewares made of
    the request. Names are read from the run's context: `user_id` (without one the call is sent unmodified), `agent_id`, and `conversation_id`
    (default: the thread's id); the arguments of the same names replace them. `memories` finds memories for a call, in any of Mem0's forms; by
    default memprefix searches its source. `compose` has further fields of `Memprefix.compose`. `on_error` is called with what failed: the call is
    then sent unmodified.
    """

    def __init__(
        self,
        memprefix: Memprefix,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        conversation_id: str | None = None,
        memories: Callable[[ModelRequest[Any]], Any] | None = None,
        compose: Mapping[str, Any] | None = None,
        on_error: Callable[[Exception], None] = _warn,
    ) -> None:
        super().__init__()
        self._memprefix = memprefix
        self._names = {"user_id": user_id, "agent_id": agent_id, "conversation_id": conversation_id}
        self._memories = memories
        self._fields = dict(compose or {})
        self._on_error = on_error

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        prompt, composed = self._composed(request)
        response = handler(composed)
        prompt.report(*response.result)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        prompt, composed = await asyncio.to_thread(self._composed, request)
        response = await handler(composed)
        await asyncio.to_thread(prompt.report, *response.result)
        return response

    def _composed(self, request: ModelRequest[Any]) -> tuple[Prompt, ModelRequest[Any]]:
        system = [request.system_message] if request.system_message and request.system_message.text else []
        messages: list[BaseMessage] = [*system, *request.messages]
        try:
            fields = self._fields_of(request)
        except Exception as error:
            self._on_error(error)
            fields = {"user_id": None}
        prompt = compose_messages(self._memprefix, messages, on_error=self._on_error, **fields)
        own = prompt.messages[: len(system)]
        changed: dict[str, Any] = {"messages": prompt.messages[len(own) :]}
        if own:
            changed["system_message"] = own[0]
        return prompt, request.override(**changed, model_settings=_with_hints(request, prompt))

    def _fields_of(self, request: ModelRequest[Any]) -> dict[str, Any]:
        info = request.runtime.execution_info
        context = request.runtime.context
        named = (
            context if isinstance(context, Mapping) else {name: getattr(context, name, None) for name in self._names}
        )
        fields = {"model": _model_name(request.model), **self._fields}
        for name, given in self._names.items():
            fields[name] = given if given is not None else named.get(name)
        if fields["conversation_id"] is None and info is not None:
            fields["conversation_id"] = info.thread_id
        if self._memories is not None and fields["user_id"] is not None:
            fields["memories"] = self._memories(request)
        if info is not None:
            # A call that another middleware repeats is composed once: a repeated id gets the stored answer.
            call = [info.task_id, fields, [_chat_message(message) for message in request.messages]]
            digest = hashlib.sha256(json.dumps(call, sort_keys=True, default=str).encode()).hexdigest()
            fields["request_id"] = f"req-{digest[:32]}"
        return fields


def _model_name(model: Any) -> str | None:
    names = (getattr(model, name, None) for name in ("model_name", "model"))
    return next((name for name in names if isinstance(name, str) and name), None)


def _with_hints(request: ModelRequest[Any], prompt: Prompt) -> dict[str, Any]:
    """Fields and headers for models of OpenAI's client; others would reject the arguments. The agent's own settings win."""
    settings = dict(request.model_settings)
    if getattr(request.model, "_llm_type", "") == "openai-chat":
        for name, hints in (("extra_headers", prompt.headers), ("extra_body", prompt.fields)):
            if hints:
                settings[name] = {**hints, **(settings.get(name) or {})}
    return settings


_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}


def _chat_message(message: BaseMessage) -> dict[str, Any]:
    """A message in OpenAI's form, with its content unmodified."""
    role = getattr(message, "role", None) or _ROLES[message.type]
    chat: dict[str, Any] = {"role": role, "content": message.content}
    if message.name is not None:
        chat["name"] = message.name
    if isinstance(message, AIMessage) and message.tool_calls:
        chat["tool_calls"] = [
            {
                "id": call["id"] or "",
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
            }
            for call in message.tool_calls
        ]
    if isinstance(message, ToolMessage):
        chat["tool_call_id"] = message.tool_call_id
    return chat


def _base_message(chat: Mapping[str, Any]) -> BaseMessage:
    """A message that memprefix added, or put back from the stored history."""
    content, name = chat.get("content") or "", chat.get("name")
    if chat["role"] == "tool":
        return ToolMessage(content, tool_call_id=chat.get("tool_call_id", ""), name=name)
    if chat["role"] == "assistant":
        calls = [
            {"id": call["id"], "name": call["function"]["name"], "args": json.loads(call["function"]["arguments"])}
            for call in chat.get("tool_calls") or []
        ]
        return AIMessage(content, tool_calls=calls, name=name)
    of = SystemMessage if chat["role"] in ("system", "developer") else HumanMessage
    return of(content, name=name)


def _restored(
    given: Sequence[BaseMessage], chat: Sequence[Mapping[str, Any]], composed: Sequence[Mapping[str, Any]]
) -> list[BaseMessage]:
    """The composed messages in LangChain's classes: those that were given keep theirs, and all other fields.

    The given messages are in order, some changed, some missing. Searched from the end, because messages are left out or put back in front.
    """
    found: list[BaseMessage] = []
    left = len(given)
    for message in reversed(composed):
        at = next((at for at in reversed(range(left)) if chat[at] == message), None)
        if at is not None:
            found.append(given[at])
        else:
            at = next((at for at in reversed(range(left)) if _is_with_section(message, chat[at])), None)
            found.append(
                _base_message(message) if at is None else given[at].model_copy(update={"content": message["content"]})
            )
        left = left if at is None else at
    return found[::-1]


def _is_with_section(message: Mapping[str, Any], plain: Mapping[str, Any]) -> bool:
    """Whether a message is the given one with a section in front of its text or after it."""
    if {**message, "content": None} != {**plain, "content": None}:
        return False
    text, said = _text(message["content"]), _text(plain["content"])
    if text.endswith(said):
        more = text[: len(text) - len(said)]
    elif text.startswith(said):
        more = text[len(said) :]
    else:
        return False
    return more.strip() == "" or more.strip().startswith("<memories>\n")


def _text(content: Any) -> str:
    parts = [content] if isinstance(content, str) else content or []
    return "".join(part if isinstance(part, str) else part.get("text", "") for part in parts)

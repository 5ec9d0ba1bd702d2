from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest
from conftest import ENGINE, FACTS, SERVICE, found

from memprefix import wrap

QUESTIONS = ["Where should we eat tonight?", "And what can we do tomorrow?"]


def test_sets_the_base_url_and_headers_and_nothing_else(user: str) -> None:
    own = openai.OpenAI(api_key="sk-own", timeout=7.0, max_retries=5, default_headers={"x-own": "kept"})
    wrapped = wrap(own, user_id=user, conversation_id="trip", agent_id="guide", api_key="memprefix's")
    assert isinstance(wrapped, openai.OpenAI)
    assert str(wrapped.base_url) == f"{SERVICE}/v1/"
    assert (wrapped.api_key, wrapped.timeout, wrapped.max_retries) == ("sk-own", 7.0, 5)
    assert wrapped._custom_headers == {
        "x-own": "kept",
        "x-memprefix-user": user,
        "x-memprefix-conversation": "trip",
        "x-memprefix-agent": "guide",
        "x-api-key": "memprefix's",
    }
    assert str(own.base_url).rstrip("/") == ENGINE


def test_a_name_that_no_header_holds_is_an_error() -> None:
    with pytest.raises(ValueError, match="x-memprefix-user holds printable ASCII"):
        wrap(openai.OpenAI(api_key="none"), user_id="josé")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("make", [openai.OpenAI, openai.AsyncOpenAI])
def test_prompts_of_a_conversation_begin_with_those_before(user: str, make: Any, stream: bool) -> None:
    async def talk() -> list[Any]:
        client = wrap(make(api_key="none"), user_id=user, conversation_id="trip")
        history: list[Any] = []
        usages = []
        for turn, question in enumerate(QUESTIONS):
            history.append({"role": "user", "content": question})
            extra = {"memprefix": {"memories": found(turn)}}
            options = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
            answer = client.chat.completions.create(model="any", messages=history, extra_body=extra, **options)
            if make is openai.AsyncOpenAI:
                answer = await answer
            if not stream:
                history.append(answer.choices[0].message)
                usages.append(answer.usage)
                continue
            chunks = [chunk async for chunk in answer] if make is openai.AsyncOpenAI else list(answer)
            text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
            history.append({"role": "assistant", "content": text})
            usages.append(chunks[-1].usage)
        return usages

    first, second = asyncio.run(talk())
    assert second.prompt_tokens_details.cached_tokens >= first.prompt_tokens - 1
    # The question, the memory and the words around them.
    assert first.prompt_tokens > len(FACTS[0].split()) + len(QUESTIONS[0].split())

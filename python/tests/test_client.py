from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import openai
import pytest
from conftest import ENGINE, FACTS, SERVICE, found

from memprefix import AsyncMemprefix, Memprefix, MemprefixError

QUESTIONS = ["Where should we eat tonight?", "And what can we do tomorrow?", "And after that?"]


class Waiting:
    """`AsyncMemprefix`, called as `Memprefix`: the same tests run with both."""

    def __init__(self, url: str | None = None) -> None:
        self._url = url

    def __getattr__(self, name: str) -> Any:
        async def call(**fields: Any) -> Any:
            async with AsyncMemprefix(self._url) as memprefix:
                return await getattr(memprefix, name)(**fields)

        return lambda **fields: asyncio.run(call(**fields))


both = pytest.mark.parametrize("client", [Memprefix, Waiting])


@both
def test_prompts_of_a_conversation_begin_with_those_before(client: Any, user: str) -> None:
    memprefix = client()
    engine = openai.OpenAI(api_key="none", base_url=ENGINE)
    history: list[Any] = []
    before: dict[str, Any] | None = None
    for turn, question in enumerate(QUESTIONS):
        history.append({"role": "user", "content": question})
        composed = memprefix.compose(
            user_id=user, conversation_id="trip", messages=history, memories=found(turn), model="any"
        )
        hints = composed["engine"]
        answer = engine.chat.completions.create(
            model="any", messages=composed["messages"], extra_body=hints["fields"], extra_headers=hints["headers"]
        )
        # A message of OpenAI's client, as it comes.
        history.append(answer.choices[0].message)
        usage = answer.usage
        assert usage is not None and usage.prompt_tokens_details is not None
        cached = usage.prompt_tokens_details.cached_tokens
        report = memprefix.feedback(
            user_id=user,
            request_id=composed["request_id"],
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=cached,
        )
        assert report["observed_cached_tokens"] == cached
        if before is not None:
            assert composed["messages"][: len(before["messages"])] == before["messages"]
            assert composed["plan"]["expected_cached_tokens"] > 0
            assert cached is not None and cached > before["tokens"] - 5
        before = {"messages": composed["messages"], "tokens": usage.prompt_tokens}
    assert before is not None
    assert [json.dumps(before["messages"]).count(fact) for fact in FACTS] == [1, 1, 1]


@both
def test_a_batch_has_an_answer_or_a_problem_for_each_request(client: Any, user: str) -> None:
    requests = [{"user_id": user, "query": "Hello?", "memories": found(turn)} for turn in range(2)]
    result = client().batch(requests=[*requests, {"user_id": user, "query": "Hello?", "top_k": 0}])
    assert sorted(answer["index"] for answer in result["answers"]) == [0, 1, 2]
    assert [answer["problem"]["status"] for answer in result["answers"] if "problem" in answer] == [422]
    assert result["end"]["composed"] == 2


@both
def test_a_forgotten_memory_is_in_no_later_prompt(client: Any, user: str) -> None:
    memprefix = client()
    first = [{"role": "user", "content": QUESTIONS[0]}]
    memprefix.compose(user_id=user, conversation_id="trip", messages=first, memories=found(0))
    receipt = memprefix.forget(user_id=user, memory_id="m0")
    assert receipt["conversations"] == [{"agent_id": None, "conversation_id": "trip"}]
    later = [*first, {"role": "assistant", "content": "At home."}, {"role": "user", "content": QUESTIONS[1]}]
    composed = memprefix.compose(user_id=user, conversation_id="trip", messages=later, memories=found(1))
    assert FACTS[0] not in json.dumps(composed["messages"])
    assert FACTS[1] in json.dumps(composed["messages"])
    assert memprefix.forget_user(user_id=user) == {"user_id": user, "scopes": 1}


@both
def test_an_error_names_each_wrong_field(client: Any, user: str) -> None:
    with pytest.raises(MemprefixError, match="top_k: .*") as caught:
        client().compose(user_id=user, query="Hello?", top_k=0)
    assert caught.value.status == 422
    assert caught.value.problem is not None
    assert [error["field"] for error in caught.value.problem["errors"]] == ["top_k"]


@both
def test_a_service_that_is_not_there_has_no_status(client: Any, user: str) -> None:
    with pytest.raises(MemprefixError, match="POST /compose had no answer") as caught:
        client("http://127.0.0.1:1").compose(user_id=user, query="Hello?")
    assert (caught.value.status, caught.value.problem) == (None, None)


@both
def test_an_answer_that_is_not_memprefix_s_says_so(client: Any, user: str) -> None:
    for url in (f"{ENGINE}/nowhere", f"{SERVICE}/nowhere"):
        with pytest.raises(MemprefixError, match="404") as caught:
            client(url).compose(user_id=user, query="Hello?")
        assert ("is the url right" in str(caught.value)) == (url == f"{ENGINE}/nowhere")


@both
@pytest.mark.parametrize("loses", ["request", "answer"])
def test_a_lost_call_is_repeated_by_the_same_id_and_composed_once(
    client: Any, user: str, network: Any, loses: str
) -> None:
    url, bodies = network(lambda call: loses if call == 1 else "nothing")
    composed = client(url).compose(user_id=user, conversation_id="trip", query="Hello?", memories=found(0))
    assert len(bodies) == 2 and bodies[0] == bodies[1]
    assert json.loads(bodies[0])["request_id"] == composed["request_id"]
    stored = httpx.get(f"{SERVICE}/user/export", params={"user_id": user}).json()
    assert len(stored["scopes"][0]["tables"]["requests"]) == 1


def test_a_memory_is_added_once_even_if_the_answer_is_lost(user: str, network: Any) -> None:
    url, bodies = network(lambda _call: "request")
    with pytest.raises(MemprefixError):
        Memprefix(url).add(user_id=user, memories=FACTS)
    assert len(bodies) == 1

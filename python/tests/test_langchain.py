from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from conftest import ENGINE, FACTS, SERVICE, found
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.tools import tool
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from memprefix import Memprefix
from memprefix.langchain import MemprefixMiddleware, compose_messages

LOOK_UP = "Look up the weather of 2 cities, one by one."


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"Sunny in {city}."


def model() -> ChatOpenAI:
    return ChatOpenAI(model="any", base_url=ENGINE, api_key="none")  # type: ignore[arg-type]


def cached(message: BaseMessage) -> int:
    assert isinstance(message, AIMessage) and message.usage_metadata is not None
    return int(message.usage_metadata["input_token_details"]["cache_read"])


def sent(message: BaseMessage) -> int:
    assert isinstance(message, AIMessage) and message.usage_metadata is not None
    return message.usage_metadata["input_tokens"]


def requests_of(user: str) -> list[dict[str, Any]]:
    listed = httpx.get(f"{SERVICE}/usage/requests", params={"user_id": user}).json()["requests"]
    return [row for row in listed if row["user_id"] == user]


def agent(hook: AgentMiddleware[Any, Any, Any], *others: AgentMiddleware[Any, Any, Any]) -> Any:
    return create_agent(
        model(),
        tools=[weather],
        system_prompt="You plan trips.",
        middleware=[*others, hook],
        checkpointer=InMemorySaver(),
        context_schema=dict,
    )


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_an_agent_s_prompts_begin_with_those_before_and_its_state_has_no_memories(user: str, way: str) -> None:
    turns = iter([0, 0, 0, 1])
    hook = MemprefixMiddleware(Memprefix(), memories=lambda _request: found(next(turns)), compose={"history": "exact"})
    graph = agent(hook)
    config = {"configurable": {"thread_id": "trip"}}

    async def talk() -> list[BaseMessage]:
        state: dict[str, Any] = {}
        for question in [LOOK_UP, "And what can we do tomorrow?"]:
            answer = getattr(graph, way)({"messages": [HumanMessage(question)]}, config, context={"user_id": user})
            state = await answer if way == "ainvoke" else answer
        return list(state["messages"])

    messages = asyncio.run(talk())
    assert "memories" not in json.dumps([message.model_dump() for message in messages])
    answers = [message for message in messages if isinstance(message, AIMessage)]
    assert [len(answer.tool_calls) for answer in answers] == [1, 1, 0, 0]
    for before, after in zip(answers, answers[1:]):
        assert cached(after) >= sent(before) - 1
    rows = requests_of(user)
    assert {row["conversation_id"] for row in rows} == {"trip"}
    assert sorted(row["reported_cached_tokens"] for row in rows) == sorted(map(cached, answers))


def test_without_a_user_a_call_is_sent_unmodified(user: str) -> None:
    hook = MemprefixMiddleware(Memprefix(), memories=lambda _request: found(0))
    given = {"messages": [{"role": "user", "content": user}]}
    state = agent(hook).invoke(given, {"configurable": {"thread_id": "trip"}}, context={})
    assert state["messages"][-1].content == f"Noted: {user}"
    assert requests_of(user) == []


def test_a_service_that_is_not_there_fails_no_call(user: str) -> None:
    errors: list[Exception] = []
    hook = MemprefixMiddleware(Memprefix("http://127.0.0.1:1"), user_id=user, on_error=errors.append)
    given = {"messages": [{"role": "user", "content": "Hello?"}]}
    state = agent(hook).invoke(given, {"configurable": {"thread_id": "trip"}})
    assert state["messages"][-1].content == "Noted: Hello?"
    assert len(errors) == 1


def test_a_call_that_another_middleware_repeats_is_composed_once(user: str) -> None:
    class Twice(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            handler(request)
            return handler(request)

    hook = MemprefixMiddleware(Memprefix(), user_id=user, memories=lambda _request: found(0))
    given = {"messages": [{"role": "user", "content": "Hello?"}]}
    agent(hook, Twice()).invoke(given, {"configurable": {"thread_id": "trip"}})
    assert len(requests_of(user)) == 1


def test_a_node_of_a_graph_composes_its_messages(user: str) -> None:
    memprefix = Memprefix()
    prompts: list[list[BaseMessage]] = []

    def chat(state: MessagesState) -> dict[str, Any]:
        turn = len(prompts)
        prompt = compose_messages(
            memprefix, state["messages"], user_id=user, conversation_id="trip", memories=found(turn)
        )
        prompts.append(prompt.messages)
        answer = model().invoke(prompt.messages, extra_headers=prompt.headers, extra_body=prompt.fields)
        prompt.report(answer)
        return {"messages": answer}

    graph = StateGraph(MessagesState).add_node(chat).add_edge(START, "chat").compile(checkpointer=InMemorySaver())
    answers = []
    for question in ["Where should we eat tonight?", "And tomorrow?"]:
        state = graph.invoke({"messages": [HumanMessage(question)]}, {"configurable": {"thread_id": "trip"}})
        answers.append(state["messages"][-1])
    first, second = prompts
    assert [message.content for message in second[: len(first)]] == [message.content for message in first]
    # The model's answer is the message of the state, with all its fields.
    assert second[1] is not first[0] and second[1].response_metadata == answers[0].response_metadata
    assert sum(str(message.content).count(FACTS[0]) for message in second) == 1
    assert cached(answers[1]) >= sent(answers[0]) - 1
    assert [row["reported_cached_tokens"] for row in requests_of(user)] == [cached(answers[1]), cached(answers[0])]

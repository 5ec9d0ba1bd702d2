"""Twenty turns of a conversation through each API, by OpenAI's and Anthropic's clients. Prints one JSON line a turn.

Arguments: the service's address, the model, and JSON of the memories of each turn.
"""

import json
import sys

from anthropic import Anthropic
from openai import OpenAI

BASE, MODEL, MEMORIES = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
TURNS = len(MEMORIES)
SYSTEM = "You answer questions about Ada in a few words. Python, {}."


def settings(way, turn):
    return {"memprefix": {"conversation_id": way, "retention": "keep", "memories": MEMORIES[turn]}}


def question(turn):
    return f"Where did Ada live in year {turn}?"


def say(way, turn, prompt, cached, headers):
    expected = headers.get("x-memprefix-expected-cached-tokens")
    line = {"way": way, "turn": turn, "prompt": prompt, "cached": cached, "expected": expected and int(expected)}
    print(json.dumps(line), flush=True)


def openai(way):
    return OpenAI(base_url=f"{BASE}/users/python-{way}/v1", api_key="none", max_retries=0, timeout=300)


def chat():
    client = openai("chat")
    messages = [{"role": "system", "content": SYSTEM.format("chat")}]
    for turn in range(TURNS):
        if turn == 5:
            call = {"id": "call_1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
            messages += [
                {"role": "user", "content": "What time is it?"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "call_1", "content": "It is noon."},
                {"role": "assistant", "content": "It is noon."},
            ]
        messages.append({"role": "user", "content": question(turn)})
        asked = dict(model=MODEL, messages=messages, max_tokens=8, temperature=0, extra_body=settings("chat", turn))
        if turn % 2:
            with client.chat.completions.with_streaming_response.create(
                **asked, stream=True, stream_options={"include_usage": True}
            ) as raw:
                text, usage = "", None
                for chunk in raw.parse():
                    text += "".join(choice.delta.content or "" for choice in chunk.choices)
                    usage = chunk.usage or usage
                headers = raw.headers
        else:
            raw = client.chat.completions.with_raw_response.create(**asked)
            answer, headers = raw.parse(), raw.headers
            text, usage = answer.choices[0].message.content, answer.usage
        messages.append({"role": "assistant", "content": text})
        details = usage.prompt_tokens_details
        say("chat", turn, usage.prompt_tokens, details and details.cached_tokens or 0, headers)


def responses(way):
    client = openai(way)
    items, previous = [], None
    for turn in range(TURNS):
        new = [{"role": "user", "content": question(turn)}]
        if turn == 5 and way == "history":
            new = [
                {"type": "function_call", "call_id": "call_1", "name": "clock", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "call_1", "output": "It is noon."},
                {"role": "assistant", "content": "It is noon."},
            ] + new
        items += new
        given = items if way == "history" else new
        more = settings(way, turn)
        if way == "continued":
            # The id of the response before names the conversation.
            del more["memprefix"]["conversation_id"]
        asked = dict(model=MODEL, instructions=SYSTEM.format(way), input=given, max_output_tokens=16, temperature=0)
        named = {} if previous is None or way == "history" else {"previous_response_id": previous}
        raw = client.responses.with_raw_response.create(**asked, **named, extra_body=more)
        answer = raw.parse()
        previous = answer.id
        items.append({"role": "assistant", "content": answer.output_text})
        details = answer.usage.input_tokens_details
        say(way, turn, answer.usage.input_tokens, details and details.cached_tokens or 0, raw.headers)


def messages():
    client = Anthropic(base_url=f"{BASE}/users/python-messages", api_key="none", max_retries=0, timeout=300)
    said = []
    for turn in range(TURNS):
        content = question(turn)
        if turn == 5:
            said += [
                {"role": "user", "content": "What time is it?"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "clock", "input": {}}]},
            ]
            result = {"type": "tool_result", "tool_use_id": "call_1", "content": "It is noon."}
            content = [result, {"type": "text", "text": content}]
        said.append({"role": "user", "content": content})
        asked = dict(model=MODEL, system=SYSTEM.format("messages"), messages=said, max_tokens=8)
        asked["extra_body"] = settings("messages", turn)
        if turn % 2:
            with client.messages.with_streaming_response.create(**asked, stream=True) as raw:
                text, usage = "", {}
                for event in raw.parse():
                    if event.type == "content_block_delta":
                        text += event.delta.text
                    more = getattr(event, "usage", None) or getattr(getattr(event, "message", None), "usage", None)
                    known = more.to_dict() if more else {}
                    usage |= {name: value for name, value in known.items() if value is not None}
                headers = raw.headers
        else:
            raw = client.messages.with_raw_response.create(**asked)
            answer, headers = raw.parse(), raw.headers
            text, usage = answer.content[0].text, answer.usage.to_dict()
        said.append({"role": "assistant", "content": text})
        cached = usage.get("cache_read_input_tokens") or 0
        prompt = usage["input_tokens"] + cached + (usage.get("cache_creation_input_tokens") or 0)
        say("messages", turn, prompt, cached, headers)


for run in (chat, lambda: responses("history"), lambda: responses("continued"), messages):
    run()

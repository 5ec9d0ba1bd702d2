"""memprefix as a memory provider of Hermes Agent: each question gets the memories that memprefix composes for it."""

import json
import logging
import os
import urllib.error
import urllib.request
import uuid
from pathlib import Path

from agent.memory_provider import MemoryProvider

logger = logging.getLogger(__name__)

# Hermes itself waits 8 seconds for a provider.
TIMEOUT_S = 3.0
# Conversations that have another name than their session: the newest of them are kept.
MOST_RENAMED = 1000
REASON_CHARACTERS = 300


class MemprefixMemory(MemoryProvider):
    """Asks memprefix once a turn. Hermes sends what it gets behind the question, and again, unmodified, in later prompts."""

    def __init__(self):
        self._failure = None
        self._answer = None

    @property
    def name(self):
        return "memprefix"

    def is_available(self):
        return True

    def get_config_schema(self):
        return [
            {"key": "url", "description": "memprefix's address", "default": "http://127.0.0.1:4600", "env_var": "MEMPREFIX_URL"},
            {"key": "api_key", "description": "memprefix's API key, where it has any", "secret": True, "env_var": "MEMPREFIX_API_KEY"},
            {"key": "user", "description": "Whose memories sessions in a terminal get", "env_var": "MEMPREFIX_USER"},
        ]

    def initialize(self, session_id, **session):
        self._url = (os.environ.get("MEMPREFIX_URL") or "http://127.0.0.1:4600").rstrip("/")
        self._key = os.environ.get("MEMPREFIX_API_KEY")
        self._user = user_of(session)
        self._names = Path(session["hermes_home"]) / "memprefix-conversations.json"
        self._enter(session_id)

    def get_tool_schemas(self):
        return []

    def prefetch(self, query, *, session_id=""):
        if not query or not self._user:
            return ""
        composed = self._compose(query)
        # A prompt that memprefix begins anew has its memories in front, where Hermes keeps its own messages.
        if composed and composed["plan"].get("added_messages") and not composed["plan"]["stable_messages"]:
            self._rename()
            composed = self._compose(query)
        if not composed:
            return ""
        said = composed["messages"][-1]["content"]
        return said[: -len(query)].rstrip() if said.endswith(query) else ""

    def sync_turn(self, user_content, assistant_content, *, session_id="", messages=None):
        self._answer = assistant_content

    def on_session_switch(self, new_session_id, **change):
        is_cut = new_session_id == self._session
        self._enter(new_session_id)
        # Memories may have been cut from its prompts: memprefix must not take them for said.
        if is_cut:
            self._rename()

    def _enter(self, session_id):
        self._session = session_id
        self._conversation = self._renamed().get(session_id, session_id)
        self._answer = None

    def _rename(self):
        self._conversation = f"{self._session}-{uuid.uuid4().hex[:12]}"
        self._answer = None
        names = self._renamed()
        names.pop(self._session, None)
        names[self._session] = self._conversation
        try:
            self._names.write_text(json.dumps(dict(list(names.items())[-MOST_RENAMED:])))
        except OSError as error:
            logger.warning("memprefix: %s cannot be written (%s); a resumed session may miss memories", self._names, error)

    def _renamed(self):
        try:
            return dict(json.loads(self._names.read_text()))
        except (OSError, ValueError, TypeError):
            return {}

    def _compose(self, query):
        answer = [{"role": "assistant", "content": self._answer}] if self._answer else []
        body = {
            "user_id": self._user,
            "conversation_id": self._conversation,
            "messages": [*answer, {"role": "user", "content": query}],
            # memprefix knows the earlier turns, and Hermes sends them as they were.
            "history": "stored",
            "retention": "keep",
        }
        headers = {"content-type": "application/json", **({"x-api-key": self._key} if self._key else {})}
        try:
            request = urllib.request.Request(f"{self._url}/compose", json.dumps(body).encode(), headers)
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
                composed = json.load(response)
            composed["messages"][-1]["content"], composed["plan"]["stable_messages"]
        except Exception as error:
            # Perhaps memprefix composed the turn and its answer was lost: what it gave counts as said in that conversation.
            if not isinstance(error, urllib.error.HTTPError):
                self._rename()
            self._tell(reason_of(error, self._url))
            return None
        self._failure = None
        return composed

    def _tell(self, failure):
        """Once for as long as it lasts."""
        if failure != self._failure:
            logger.warning("memprefix: %s; Hermes answers without memories until then", failure)
        self._failure = failure


def user_of(session):
    """Nobody's in a chat of several people, where one would be answered with another's memories."""
    if session.get("chat_type") not in (None, "", "dm"):
        return None
    if session.get("user_id"):
        return f"{session['platform']}:{session['user_id']}"
    user = os.environ.get("MEMPREFIX_USER")
    if not user:
        logger.warning("memprefix: nobody is named; set MEMPREFIX_USER in Hermes' .env to the user whose memories are wanted")
    return user


def reason_of(error, url):
    if isinstance(error, urllib.error.HTTPError):
        if error.code in (401, 403):
            return f"{url} rejected the API key ({error.code}): set MEMPREFIX_API_KEY in Hermes' .env to one of its keys"
        if error.code in (404, 405):
            return f"{url} has no POST /compose ({error.code}): start a current memprefix there, or set MEMPREFIX_URL"
        return f"{url} refused to compose ({error.code}): {problem_in(error)}"
    if isinstance(error, OSError):
        return f"{url} did not answer ({getattr(error, 'reason', error)}): start memprefix there, or set MEMPREFIX_URL"
    return f"{url} answered, but not as memprefix does: start a current memprefix there, or set MEMPREFIX_URL"


def problem_in(error):
    try:
        problem = json.load(error)
        fields = "; ".join(f"{one['field']}: {one['message']}" for one in problem.get("errors", []))
        return str(fields or problem.get("detail") or problem["title"])[:REASON_CHARACTERS]
    except Exception:
        return "it did not say why"
    finally:
        error.close()


def register(ctx):
    ctx.register_memory_provider(MemprefixMemory())

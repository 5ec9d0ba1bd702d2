"""contextpilot_optimize.py: the messages that ContextPilot builds, a line of JSON for each {docs, query, conversation} on standard input."""

import contextlib
import json
import sys

import contextpilot

for line in sys.stdin:
    given = json.loads(line)
    with contextlib.redirect_stdout(sys.stderr):
        messages = contextpilot.optimize(given["docs"], given["query"], conversation_id=given["conversation"])
    print(json.dumps(messages), flush=True)

"""The orders of ContextPilot's online index: contextpilot_orders.py SEARCHES ORDERS.

SEARCHES: a JSON list of searches, each a list of memory numbers, best first. ORDERS: where {"k20": [...], "k100": [...]} goes. Each k has
an index of its own, which begins empty and takes one search after the other.
"""

import json
import logging
import sys

from contextpilot.server.live_index import ContextPilot

logging.disable(logging.CRITICAL)
with open(sys.argv[1], encoding="utf-8") as file:
    searches = json.load(file)
orders = {}
for k in (20, 100):
    index = ContextPilot(use_gpu=False, alpha=0.001)
    ordered = []
    for search in searches:
        reordered, _ = index.reorder([f"m{memory}" for memory in search[:k]])
        ordered.append([int(name[1:]) for name in reordered[0]])
    orders[f"k{k}"] = ordered
with open(sys.argv[2], "w", encoding="utf-8") as file:
    json.dump(orders, file)

"""Composes an agent's memories into prompts that hit the engine's prefix cache, with a memprefix service."""

from .client import AsyncMemprefix, Memprefix, MemprefixError
from .openai import wrap

__all__ = ["AsyncMemprefix", "Memprefix", "MemprefixError", "wrap"]

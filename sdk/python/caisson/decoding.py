"""JSON of a server: the text of an answer is not trusted to be what the description says."""

from __future__ import annotations

import json
from typing import Any, Dict

from .errors import EngineError

SHOWN = 200


def bad_answer(what: str) -> EngineError:
    return EngineError(f'the answer of the server {what}', retryable=False, code='bad_answer')


def object_of(text: bytes) -> Dict[str, Any]:
    """The JSON object of a text.  Errors: EngineError with the code `bad_answer`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        shown = text[:SHOWN].decode('utf-8', 'replace')
        raise bad_answer(f'is no JSON ({type(error).__name__}): {shown!r}') from error
    if not isinstance(value, dict):
        raise bad_answer(f'is no JSON object, but {type(value).__name__}')
    return value

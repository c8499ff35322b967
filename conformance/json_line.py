"""Any value as a line of JSON: what JSON cannot say is made text. Records and the messages of a sweep's workers are such lines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from conformance.errors import encodable
from conformance.files import MAX_DEPTH


def json_line(value: Mapping[str, Any]) -> bytes:
    """The line, without its end."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError):
        # NaN, half a surrogate pair, a key that is no text, nesting without end
        return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":")).encode()


def plain(value: Any, level: int = 0) -> Any:
    """The value as JSON can say it: keys are text, NaN and infinities are text, half a surrogate pair is escaped."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return encodable(value)
    if level >= 2 * MAX_DEPTH:
        return "…"
    if isinstance(value, Mapping):
        return {encodable(str(key)): plain(inner, level + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(inner, level + 1) for inner in value]
    return encodable(str(value))

"""The traffic that is compared: scenarios, each told as if nothing were translated."""

from __future__ import annotations

from scenario import Scenario
from traffic import errors, exhaustion, fragments, hairpin, odd, sessions


def generated() -> list[Scenario]:
    """Everything that needs no capture."""
    return [
        *sessions.scenarios(),
        *hairpin.scenarios(),
        *errors.scenarios(),
        *fragments.scenarios(),
        *exhaustion.scenarios(),
        *odd.scenarios(),
    ]

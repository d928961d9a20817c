"""What can be set, and which values are right: names, kinds and bounds of all settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "flag", "whole", "number", "choice", "list", "k"]

PREFIX = "APPLY_EDIT_"


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that can be set: `name` as in ``--name``, ``APPLY_EDIT_NAME`` and in TOML.

    `low` and `high` bound numbers, both inclusive unless `open_low`. `choices` lists the values
    of a choice. What is `personal` is the user's own say: a project's file cannot set it.
    """

    name: str
    kind: Kind
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    open_low: bool = False
    personal: bool = False

    @property
    def field(self) -> str:
        """The name as a Python identifier."""
        return self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return PREFIX + self.field.upper()

    @property
    def wants(self) -> str:
        """What a right value looks like, in words."""
        if self.kind == "choice":
            return "one of " + ", ".join(self.choices)
        if self.kind == "flag":
            return "true or false"
        if self.kind == "list":
            return "a list of codes"
        if self.kind == "k":
            return "auto or a whole number from 0 up"
        if self.kind == "text":
            return "a text that is not empty"
        noun = "a whole number" if self.kind == "whole" else "a number"
        if self.low is None:
            return noun
        low = f"above {self.low:g}" if self.open_low else f"from {self.low:g}"
        if self.high is None:
            return f"{noun} {low}" if self.open_low else f"{noun} {low} up"
        return f"{noun} {low} to {self.high:g}"


SETTINGS: tuple[Setting, ...] = (
    Setting("model", "text"),
    Setting("revision", "text"),
    Setting("device", "text"),
    Setting("dtype", "choice", choices=("auto", "bfloat16", "float16", "float32")),
    Setting("max-new-tokens", "whole", low=1),
    Setting("temperature", "number", low=0),
    Setting("top-p", "number", low=0, high=1, open_low=True),
    Setting("top-k", "whole", low=0),
    Setting("seed", "whole", low=0),
    Setting("draft", "text"),
    Setting("k", "k", low=0),
    Setting("verify", "flag"),
    Setting("timeout", "number", low=0, open_low=True),
    Setting("batch", "whole", low=1),
    Setting("offline", "flag"),
    Setting("encoding", "text"),
    Setting("allow", "list"),
    Setting("stats", "flag"),
    Setting("history", "flag", personal=True),
    Setting("verbose", "flag"),
    Setting("quiet", "flag"),
    Setting("color", "choice", choices=("auto", "always", "never")),
    Setting("progress", "flag"),
)
BY_NAME = {setting.name: setting for setting in SETTINGS}


def parse(setting: Setting, raw: str) -> object | None:
    """The value a text of the command line or environment stands for; None if it is none."""
    text = raw.strip()
    if setting.kind == "flag":
        low = text.lower()
        on, off = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
        return True if low in on else False if low in off else None
    if setting.kind == "list":
        return typed(setting, [part.strip() for part in text.split(",") if part.strip()])
    if setting.kind == "k" and text != "auto":
        return typed(setting, _number(text, whole=True))
    if setting.kind in ("whole", "number"):
        return typed(setting, _number(text, whole=setting.kind == "whole"))
    return typed(setting, text)


def _number(text: str, whole: bool) -> int | float | None:
    try:
        return int(text) if whole else float(text)
    except ValueError:
        return None


def typed(setting: Setting, raw: object) -> object | None:
    """`raw` if it is of the setting's type and within bounds (as TOML has types); else None."""
    if setting.kind == "flag":
        return raw if isinstance(raw, bool) else None
    if setting.kind == "list":
        texts = isinstance(raw, (list, tuple)) and all(isinstance(r, str) and r for r in raw)
        return tuple(raw) if texts and isinstance(raw, (list, tuple)) else None
    if setting.kind == "choice":
        return raw if raw in setting.choices else None
    if setting.kind == "text":
        return raw if isinstance(raw, str) and raw.strip() else None
    if setting.kind == "k" and raw == "auto":
        return raw
    numbers = (int, float) if setting.kind == "number" else (int,)
    if isinstance(raw, bool) or not isinstance(raw, numbers):
        return None
    value = float(raw) if setting.kind == "number" else raw
    return value if _within(setting, float(value)) else None


def _within(setting: Setting, value: float) -> bool:
    if value != value or value in (float("inf"), float("-inf")):
        return False
    if setting.low is not None and (
        value < setting.low or (setting.open_low and value == setting.low)
    ):
        return False
    return setting.high is None or value <= setting.high

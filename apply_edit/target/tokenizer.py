"""A tokenizer of transformers as a `Codec`: every text is plain text, control tokens inert."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_PLACE = "\u241eapply-edit\u241e"


class HubCodec:
    """Wraps a fast tokenizer; adds the model's own ends of text to its control tokens.

    Control tokens that stand in a text are spelled out with ordinary tokens, so that a source
    file cannot end a turn or open another.
    """

    def __init__(self, tokenizer: Any, ends: Sequence[int] = ()) -> None:
        self._tokenizer = tokenizer
        special = {
            index for index, token in tokenizer.added_tokens_decoder.items() if token.special
        }
        self._stop = frozenset({*special, *ends})

    def encode(self, text: str) -> list[int]:
        tokens: list[int] = self._tokenizer.encode(
            text, add_special_tokens=False, split_special_tokens=True
        )
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(
            list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text

    def chat(self, system: str, user: str) -> tuple[list[int], list[int]]:
        before, behind = self._frame(system, user)
        return self._with_control(before), self._with_control(behind)

    @property
    def vocabulary(self) -> dict[str, int]:
        """Every token's text as the tokenizer writes it, and its id."""
        found: dict[str, int] = self._tokenizer.get_vocab()
        return found

    @property
    def stop(self) -> frozenset[int]:
        return self._stop

    def _frame(self, system: str, user: str) -> tuple[str, str]:
        """The model's chat template around a place that stands for the user's text."""
        if not self._tokenizer.chat_template:
            return f"{system}\n\n{user}", "\n\n"
        said = f"{user}{_PLACE}"
        for messages in (
            [{"role": "system", "content": system}, {"role": "user", "content": said}],
            # Some templates know no system role.
            [{"role": "user", "content": f"{system}\n\n{said}"}],
        ):
            try:
                text = self._tokenizer.apply_chat_template(
                    messages, tokenize=False, add_generation_prompt=True
                )
            except Exception:
                continue
            if text.count(_PLACE) == 1:
                before, _, behind = text.partition(_PLACE)
                return before, behind
        return f"{system}\n\n{user}", "\n\n"

    def _with_control(self, text: str) -> list[int]:
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return tokens

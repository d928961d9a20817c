"""Does drafting change anything? The same prompt decoded once more, one token a pass."""

from __future__ import annotations

import contextlib

from apply_edit.answer import Writing
from apply_edit.decode.divergence import Remembering, first_divergence
from apply_edit.decode.loop import decoding
from apply_edit.decode.rows import Asking
from apply_edit.decode.schedule import FixedSchedule
from apply_edit.decode.types import Step, Target
from apply_edit.drafting import Silent
from apply_edit.errors import Refusal
from apply_edit.events import Note, Stage
from apply_edit.target.codec import Codec


class _Differs(Exception):  # noqa: N818 - ends the decoding, and is no failure of its own
    """The plain tokens are others; what follows them says nothing more."""


def verifying(writing: Writing, target: Target, codec: Codec) -> Asking[None]:
    """Decode plainly behind the prompt that `target` holds, and compare.

    Raises `Refusal` ``not-exact``, saying where and by how much the two differ.
    """
    answer, prompt, on_event = writing.answer, writing.prompt, writing.on_event
    on_event(Note("decoding once more, one token a pass, to verify"))
    target.reset(len(prompt.tokens) - 1)
    plain: list[int] = []
    watched = Remembering(target)

    def compare(step: Step) -> None:
        plain.extend(step.tokens)
        on_event(Stage("verify", len(plain), len(answer.tokens), "tokens"))
        writing.check_time()
        if plain != answer.tokens[: len(plain)]:
            raise _Differs

    with contextlib.suppress(_Differs):
        yield from decoding(
            watched,
            Silent(),
            FixedSchedule(0),
            tail=prompt.tokens[target.length :],
            rule=writing.options.rule(),
            stop=codec.stop,
            # An answer cut short for its loop would go on here.
            budget=answer.budget if answer.stats.finish == "stop" else len(answer.tokens),
            each=compare,
            clock=writing.clock,
        )
    target.reset(0)
    answer.stats.verified = plain == answer.tokens
    found = first_divergence(answer.tokens, plain, watched.last)
    if found is not None:
        raise Refusal(
            "not-exact",
            f"drafted and plain decoding differ at {found.describe(codec.decode)}"
            "; please report this with the output of -v",
        )

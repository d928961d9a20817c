"""A limit on the time that an edit may take, whatever it is that takes it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from time import perf_counter

from apply_edit.errors import Refusal
from apply_edit.events import Event, OnEvent, Stage, Wrote

_WHAT = {
    "start": "starting",
    "wait": "waiting for another run that prepares the model",
    "download": "fetching the weights",
    "verify": "checking the weights",
    "convert": "converting the weights",
    "load": "loading the weights",
    "calibrate": "measuring this machine",
    "prefill": "reading the file",
    "decode": "writing the answer",
}
_ADVICE = {
    "wait": "try again later or raise --timeout",
    "download": "what has come is kept: run `apply-edit models pull` once, or raise --timeout",
    "verify": "run `apply-edit models pull` once, or raise --timeout",
    "convert": "run `apply-edit models pull` once, or raise --timeout",
    "calibrate": "this is done once: run an edit without --timeout, or raise it",
}


class Deadline:
    """`seconds` on `clock` from now on, `loading` of which are spent; None is no limit.

    What happens is told by events, so the limit holds wherever there are some: while weights are
    fetched, converted and loaded as well as while the answer is written.
    """

    def __init__(
        self,
        seconds: float | None,
        clock: Callable[[], float] = lambda: perf_counter(),
        *,
        loading: float = 0.0,
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._last = clock()
        self._started = self._last - loading
        self._doing = "start"
        self._spent: dict[str, float] = defaultdict(float, load=loading)

    def listening(self, on_event: OnEvent) -> OnEvent:
        """A listener who passes events on and, when time is up, raises `Refusal` ``timeout``."""
        if self._seconds is None:
            return on_event

        def listen(event: Event) -> None:
            on_event(event)
            self._note(event)

        return listen

    def _note(self, event: Event) -> None:
        now = self._clock()
        if isinstance(event, (Stage, Wrote)):
            doing = event.name if isinstance(event, Stage) else "decode"
            # A pass is told of when it is over, a stage while it goes on.
            self._spent[doing if isinstance(event, Wrote) else self._doing] += now - self._last
            self._last, self._doing = now, doing
        if isinstance(event, Stage) and event.done == event.total:
            return  # to be kept, before the next event ends the run
        if isinstance(event, Wrote) and event.step.finish is not None:
            return
        self.check()

    def check(self) -> None:
        """Raises `Refusal` ``timeout`` when time is up."""
        if self._seconds is not None and self._clock() - self._started > self._seconds:
            raise self._refusal()

    def _refusal(self) -> Refusal:
        self._spent[self._doing] += self._clock() - self._last
        most, seconds = max(self._spent.items(), key=lambda item: item[1], default=("", 0.0))
        why = f"; {_WHAT[most]} took {seconds:.1f} s" if most in _WHAT else ""
        advice = _ADVICE.get(most, "raise --timeout")
        return Refusal("timeout", f"there was no whole answer in time{why}; {advice}")

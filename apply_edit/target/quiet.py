"""Keep libraries from talking: no bars, banners or warnings on the streams of the caller."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

_CHATTY = ("transformers", "huggingface_hub", "accelerate", "gguf", "filelock", "httpx", "urllib3")


@contextlib.contextmanager
def quiet(*, stderr: bool = False) -> Iterator[None]:
    """Silence warnings, logging below errors, progress bars and prints while the block runs.

    Only libraries that are imported already can be told to keep their bars to themselves, so
    import first. `stderr` drops what goes there as well: only for blocks that emit no events,
    since a live display draws on stderr. What was set before is set again afterwards.
    """
    loggers = [logging.getLogger(name) for name in _CHATTY]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with (
            Path(os.devnull).open("w") as sink,
            warnings.catch_warnings(),
            contextlib.redirect_stdout(sink),
            contextlib.redirect_stderr(sink) if stderr else contextlib.nullcontext(),
            _bars_off(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextlib.contextmanager
def _bars_off() -> Iterator[None]:
    """Switch off the progress bars of the libraries that are loaded."""
    undo = []
    if "transformers" in sys.modules:
        from transformers.utils import logging as talk

        if talk.is_progress_bar_enabled():
            talk.disable_progress_bar()
            undo.append(talk.enable_progress_bar)
    if "huggingface_hub" in sys.modules:
        from huggingface_hub import utils as bars

        if not bars.are_progress_bars_disabled():  # type: ignore[attr-defined]
            bars.disable_progress_bars()  # type: ignore[attr-defined]
            undo.append(bars.enable_progress_bars)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for enable in undo:
            enable()

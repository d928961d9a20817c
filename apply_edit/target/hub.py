"""The model Hub: is it there, one file of it as a stream, one model of it as a folder."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from apply_edit.errors import ApplyEditError, ModelError
from apply_edit.events import OnEvent, Stage
from apply_edit.target.quiet import quiet

_PROBE_SECONDS = 2.5
_READ_SECONDS = 30.0

WANTED = (
    *("*.safetensors", "model.safetensors.index.json", "config.json", "generation_config.json"),
    *("tokenizer*", "vocab.json", "merges.txt", "special_tokens_map.json", "added_tokens.json"),
    *("chat_template*",),
)
"""What a model needs here. Pickles (.bin, .pt) and code are never fetched."""


class HubError(Exception):
    """The Hub did not give what was asked; the message is half a sentence."""


def switched_off() -> bool:
    """Whether the environment forbids the Hub (HF_HUB_OFFLINE)."""
    return os.environ.get("HF_HUB_OFFLINE", "").strip().upper() in {"1", "ON", "YES", "TRUE"}


@cache
def reachable() -> bool:
    """Whether the Hub answers at all, asked once a run and for at most 2.5 seconds."""
    if switched_off():
        return False
    answers: list[bool] = []

    def ask() -> None:
        with contextlib.suppress(Exception):
            from huggingface_hub import constants, get_session

            get_session().head(constants.ENDPOINT, timeout=_PROBE_SECONDS)
            answers.append(True)

    # Name resolution knows no timeout, so the wait is bounded from outside.
    thread = threading.Thread(target=ask, daemon=True, name="hub-probe")
    thread.start()
    thread.join(_PROBE_SECONDS)
    return bool(answers)


@contextlib.contextmanager
def stream(repo: str, file: str, start: int, size: int) -> Iterator[tuple[int, Iterator[bytes]]]:
    """The bytes of a file from `start` on: yields (where they begin, blocks).

    They begin at 0 where the server does not resume. `size` is what the whole file must have.
    Raises `HubError`, also from within the blocks' loop.
    """
    from huggingface_hub import constants, get_session
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

    headers = {
        **build_hf_headers(library_name="apply-edit"),
        "Accept-Encoding": "identity",
        "Range": f"bytes={start}-",
    }
    try:
        with get_session().stream(
            "GET",
            f"{constants.ENDPOINT}/{repo}/resolve/main/{quote(file)}",
            headers=headers,
            follow_redirects=True,
            timeout=_READ_SECONDS,
        ) as response:
            if response.status_code not in (200, 206):
                raise HubError(f"the Hub answered {response.status_code} for {repo}/{file}")
            begin = start if response.status_code == 206 else 0
            length = response.headers.get("content-length")
            if length is not None and begin + int(length) != size:
                raise HubError(f"{repo}/{file} has another size than the catalog says")
            yield begin, response.iter_raw()
    except (ApplyEditError, HubError, OSError):
        raise
    except Exception as error:  # the client library's own errors, under whatever name
        raise HubError(f"the Hub broke off ({type(error).__name__})") from error


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A model of the Hub on disk; `commit` is the exact revision."""

    folder: Path
    commit: str


def snapshot(repo: str, revision: str | None, *, offline: bool, on_event: OnEvent) -> Snapshot:
    """Fetch (or find in the Hub's own cache) one revision of a model that has safetensors.

    Raises `ModelError`: ``unsafe-weights``, ``unknown-model``, ``no-weights``, ``offline``.
    """
    import huggingface_hub
    from huggingface_hub import errors

    at = f" at revision {revision}" if revision else ""
    local = offline or not reachable()
    with quiet():
        try:
            if not local:
                _check_files(repo, revision)
            folder = Path(
                huggingface_hub.snapshot_download(
                    repo,
                    revision=revision,
                    allow_patterns=list(WANTED),
                    local_files_only=local,
                    library_name="apply-edit",
                    tqdm_class=_bar(repo, on_event),
                )
            )
        except errors.LocalEntryNotFoundError as error:
            if offline:
                raise ModelError(
                    "offline", f"{repo}{at} is not in the Hub's cache; run once without --offline"
                ) from error
            raise ModelError(
                "no-weights",
                f"{repo}{at} is not in the Hub's cache and the Hub does not answer; check the "
                "network, or pass --model with a local folder or GGUF file",
            ) from error
        except errors.GatedRepoError as error:
            raise ModelError(
                "no-weights", f"{repo} asks for consent; accept its terms and log in with hf auth"
            ) from error
        except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
            raise ModelError("unknown-model", f"the Hub knows no model {repo!r}") from error
        except errors.RevisionNotFoundError as error:
            raise ModelError("unknown-model", f"the Hub knows no {repo}{at}") from error
        except errors.HfHubHTTPError as error:
            raise ModelError("no-weights", f"the Hub refused {repo}{at}: {error}") from error
    return Snapshot(folder, folder.name)


def _check_files(repo: str, revision: str | None) -> None:
    """Refuse before the first byte of a model that would be refused after the last."""
    from huggingface_hub import HfApi

    names = HfApi(library_name="apply-edit").list_repo_files(repo, revision=revision)
    if not any(name.endswith(".safetensors") and "/" not in name for name in names):
        hint = "download one of its GGUF files and pass its path"
        if not any(name.endswith(".gguf") for name in names):
            hint = "choose a model that has them"
        raise ModelError("unsafe-weights", f"{repo} has no safetensors weights; {hint}")


def _bar(repo: str, on_event: OnEvent) -> Any:
    """A progress bar class that draws nothing and tells `on_event` of the bytes."""
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

    class Bar(tqdm):  # type: ignore[misc, unused-ignore]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._bytes = kwargs.get("unit") == "B"
            self._seen = float(kwargs.get("initial") or 0)
            kwargs["disable"] = True
            super().__init__(*args, **kwargs)
            self._whole = kwargs.get("total")

        def update(self, n: float | None = 1) -> bool | None:
            self._seen += n or 0
            if self._bytes:
                on_event(Stage("download", self._seen, self.total or self._whole, "bytes", repo))
            return None

    return Bar

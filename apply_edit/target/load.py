"""From what the user calls a model to a folder, a tokenizer and an empty model ready for weights.

What `resolve` takes, in this order:

1. a name of the catalog (it holds no ``/``);
2. a path: whatever ends in ``.gguf``, starts with ``.``, ``~`` or ``/``, or holds a ``/`` and
   exists. So a folder ``org/name`` here wins over the Hub's; a folder ``name`` is ``./name``;
3. a Hub id ``org/name``, perhaps at a revision.

Nothing here runs code or unpickles data that came with a model.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from apply_edit.errors import ModelError, UsageError
from apply_edit.events import OnEvent, ignore
from apply_edit.target.catalog import CATALOG
from apply_edit.target.memory import check_memory
from apply_edit.target.quiet import quiet
from apply_edit.target.shards import open_shards, shard_files
from apply_edit.target.store import MANIFEST

if TYPE_CHECKING:
    import torch

__all__ = [
    "Resolved",
    "build_meta",
    "check_folder",
    "check_memory",
    "load_tokenizer",
    "open_shards",
    "resolve",
]

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_VOCABULARIES = ("tokenizer.json", "vocab.json", "tokenizer.model")
_PLAIN_TOKENIZERS = {"TokenizersBackend", "PreTrainedTokenizerFast"}


@dataclass(frozen=True, slots=True)
class Resolved:
    """A model found: its `folder` of safetensors and tokenizer, and `weights_id`, a string that
    changes with the weights and is fit for a file name, for caches that depend on them."""

    folder: Path
    name: str
    weights_id: str
    source: Literal["catalog", "hub", "folder", "gguf"]


def resolve(
    model: str,
    *,
    revision: str | None = None,
    offline: bool = False,
    on_event: OnEvent = ignore,
) -> Resolved:
    """Find a model, fetching and converting it where it is not on this machine yet.

    Raises `ModelError`: ``unknown-model``, ``no-weights``, ``offline``, ``corrupt-download``,
    ``no-space``, ``unsafe-weights``, ``remote-code``, ``corrupt-model``, ``unsupported-gguf``, …
    and `UsageError` ``no-revision``.
    """
    path = Path(model).expanduser()
    local = _is_path(model, path)
    if revision is not None and (local or model in CATALOG):
        raise UsageError("no-revision", f"--revision goes with a Hub id, and {model} is none")
    if model in CATALOG:
        from apply_edit.target.pull import pull
        from apply_edit.target.store import slot_of

        folder = pull(model, offline=offline, on_event=on_event)
        return Resolved(folder, model, slot_of(model).id, "catalog")
    if local:
        return _local(model, path, on_event)
    if _HUB_ID.fullmatch(model):
        from apply_edit.target.hub import snapshot

        shot = snapshot(model, revision, offline=offline, on_event=on_event)
        check_folder(shot.folder)
        name = model.replace("/", "--")
        return Resolved(shot.folder, model, f"{name}-{shot.commit[:12]}", "hub")
    raise ModelError("unknown-model", f"there is no model {model!r}; {_hint(model, path)}")


def _is_path(model: str, path: Path) -> bool:
    named = model.endswith(".gguf") or model.startswith((".", "~", "/")) or path.is_absolute()
    return named or ("/" in model and path.exists())


def _hint(model: str, path: Path) -> str:
    if model and path.exists():
        return f"for the one on this disk write ./{model}"
    near = difflib.get_close_matches(model.lower(), CATALOG, n=2, cutoff=0.4)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"the names are {', '.join(CATALOG)}, or give a Hub id, a folder or a GGUF file"


def _local(model: str, path: Path, on_event: OnEvent) -> Resolved:
    if path.is_dir():
        check_folder(path)
        return Resolved(path, model, _folder_id(path), "folder")
    if path.is_file():
        from apply_edit.target.pull import adopt

        slot, folder = adopt(path, on_event=on_event)
        return Resolved(folder, model, slot.id, "gguf")
    raise ModelError("unknown-model", f"{model} is neither a folder nor a file; check the path")


def check_folder(folder: Path) -> None:
    """Refuse a folder that is no whole, safe model: no configuration, no safetensors, own code."""
    config = _read_json(folder / "config.json")
    if config is None:
        raise ModelError("corrupt-model", f"{folder} has no config.json; pass a model's folder")
    for settings in (config, _read_json(folder / "tokenizer_config.json") or {}):
        if settings.get("auto_map"):
            raise ModelError(
                "remote-code", f"the model in {folder} wants to run its own code; choose another"
            )
    if config.get("quantization_config"):
        raise ModelError(
            "unsupported-model",
            f"the weights in {folder} are quantised; use the plain ones or a GGUF",
        )
    shard_files(folder)


def _folder_id(folder: Path) -> str:
    """Changes when the configuration or any file of weights is written anew."""
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    for path in shard_files(folder):
        stat = path.stat()
        digest.update(f"{path.name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    name = re.sub(r"[^\w.-]+", "_", folder.resolve().name)[:60]
    return f"{name}-{digest.hexdigest()[:12]}"


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of a model's folder, as transformers' class.

    Raises `ModelError` ``unsupported-model`` where there is none that keeps offsets.
    """
    if not any((folder / name).is_file() for name in _VOCABULARIES):
        # transformers would make an empty tokenizer, and not say so.
        raise ModelError(
            "unsupported-model", f"{folder} has no tokenizer.json; fetch the model's tokenizer too"
        )
    settings = _read_json(folder / "tokenizer_config.json") or {}
    if (folder / MANIFEST).is_file():
        return _own_tokenizer(folder, settings)
    plain = settings.get("tokenizer_class") in _PLAIN_TOKENIZERS
    try:
        if plain and (folder / "tokenizer.json").is_file():
            # tokenizer.json says all there is to say; the Auto class would read it twice.
            from transformers import PreTrainedTokenizerFast as Reader
        else:
            from transformers import AutoTokenizer as Reader
        with quiet(stderr=True):
            tokenizer = Reader.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=False
            )
    except (ValueError, KeyError, OSError, ImportError) as error:
        raise ModelError(
            "unsupported-model", f"the tokenizer in {folder} cannot be read: {_line(error)}"
        ) from error
    if not tokenizer.is_fast:
        raise ModelError("unsupported-model", f"{folder} has no tokenizer.json; choose another")
    return tokenizer


def _own_tokenizer(folder: Path, settings: dict[str, Any]) -> Any:
    """A tokenizer that `convert` wrote: its settings are few, so the 10 MB are parsed only once."""
    from transformers import PreTrainedTokenizerFast

    kept = {k: v for k, v in settings.items() if k.endswith("_token") or k == "model_max_length"}
    template = folder / "chat_template.jinja"
    if template.is_file():
        kept["chat_template"] = template.read_text(encoding="utf-8")
    with quiet(stderr=True):
        return PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **kept)


def build_meta(
    folder: Path, dtype: torch.dtype | None = None, attention: str | None = None
) -> tuple[Any, Any]:
    """(configuration, model) with every weight on the meta device: shapes, and no memory.

    Buffers that no file holds (rotary frequencies) are real, in float32. `attention` names an
    implementation registered with transformers; `dtype` defaults to bfloat16.

    Raises `ModelError` ``unsupported-model``.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    with quiet(stderr=True):
        try:
            config = AutoConfig.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=False
            )
            more = {} if attention is None else {"attn_implementation": attention}
            with torch.device("meta"):
                model = AutoModelForCausalLM.from_config(
                    config, dtype=dtype or torch.bfloat16, trust_remote_code=False, **more
                )
        except (ValueError, KeyError, OSError, ImportError, AttributeError) as error:
            raise ModelError(
                "unsupported-model", f"transformers cannot build the model: {_line(error)}"
            ) from error
        _real_buffers(model)
    model.eval()
    model.requires_grad_(False)
    return config, model


def _real_buffers(model: Any) -> None:
    """Compute the buffers that are in no file, as their modules' constructors do."""
    persistent = set(model.state_dict())
    for path, module in list(model.named_modules()):
        missing = [
            name
            for name, buffer in module.named_buffers(recurse=False)
            if buffer.is_meta and (f"{path}.{name}" if path else name) not in persistent
        ]
        if not missing:
            continue
        try:
            fresh = type(module)(module.config)
            made = {name: fresh.get_buffer(name) for name in missing}
        except (TypeError, AttributeError) as error:
            raise ModelError(
                "unsupported-model",
                f"{type(module).__name__} holds buffers that cannot be made here; choose another",
            ) from error
        for name, buffer in made.items():
            setattr(module, name, buffer)


def _read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object; None where there is no such file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise ModelError("corrupt-model", f"{path} cannot be read ({_line(error)})") from error
    if not isinstance(value, dict):
        raise ModelError("corrupt-model", f"{path} holds no JSON object")
    return value


def _line(error: BaseException) -> str:
    """The first line of a library's message."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason")

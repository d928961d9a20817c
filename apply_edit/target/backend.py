"""A model of transformers as a `Backend`: found, checked, and loaded when first asked."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apply_edit.decode.rows import Rows
from apply_edit.decode.types import Scores, Target
from apply_edit.errors import ModelError, UsageError
from apply_edit.events import Note, OnEvent, Stage, ignore
from apply_edit.target.load import Resolved, build_meta, check_memory, load_tokenizer, resolve
from apply_edit.target.memory import available_bytes
from apply_edit.target.store import cache_root
from apply_edit.target.tokenizer import HubCodec

if TYPE_CHECKING:
    import torch

    from apply_edit.draft.drafter import Drafter
    from apply_edit.target.calibrate import Calibration
    from apply_edit.target.engine import Engine

DTYPES = ("auto", "bfloat16", "float16", "float32")


class TorchBackend:
    """See `Backend`. `open` finds the model and reads its tokenizer; `target` loads the weights."""

    def __init__(self, resolved: Resolved, device: torch.device, dtype: torch.dtype) -> None:
        import torch

        from apply_edit.target import attention
        from apply_edit.target.engine import check_supported

        self._resolved = resolved
        self._device = device
        self._dtype = dtype
        self._torch = torch
        attention.register()
        config, self._model = build_meta(resolved.folder, dtype, attention.NAME)
        check_supported(config)
        self._window = int(getattr(config, "max_position_embeddings", 0) or 0)
        self._vocab = int(config.vocab_size)
        self._codec = HubCodec(load_tokenizer(resolved.folder), _ends(config))
        self._offline = False
        self._drafters: dict[str, Drafter | None] = {}
        self._engine: Engine | None = None
        self._known: set[tuple[int, ...]] = set()
        self._calibration: Calibration | None = None

    @classmethod
    def open(
        cls,
        model: str,
        *,
        revision: str | None,
        device: str,
        dtype: str,
        offline: bool,
        on_event: OnEvent,
    ) -> TorchBackend:
        """Find `model` (catalog name, Hub id, folder or GGUF file), fetch what is missing.

        Raises `ModelError` and `UsageError` ``unknown-device``, ``unknown-dtype``.
        """
        _use_huge_pages()
        if dtype not in DTYPES:
            raise UsageError("unknown-dtype", f"--dtype {dtype}: use one of {', '.join(DTYPES)}")
        resolved = resolve(model, revision=revision, offline=offline, on_event=on_event)
        place = _device(device)
        kind = _dtype(dtype, place)
        on_event(Note(f"model {resolved.name} from {resolved.source}, {kind} on {place}"))
        backend = cls(resolved, place, kind)
        backend._offline = offline
        return backend

    @property
    def resolved(self) -> Resolved:
        """The folder of the weights, and the string that changes with them."""
        return self._resolved

    @property
    def name(self) -> str:
        return self._resolved.name

    @property
    def _kind(self) -> str:
        return str(self._dtype).removeprefix("torch.")

    @property
    def codec(self) -> HubCodec:
        return self._codec

    @property
    def window(self) -> int:
        return self._window

    def frame(self, closing: str) -> None:
        """The prompt asks for it; nothing to do."""

    def target(self, on_event: OnEvent) -> Engine:
        if self._engine is None:
            self._engine = self._load(on_event)
        return self._engine

    def drafter(self, name: str, on_event: OnEvent) -> Drafter | None:
        """What drafts for the target: ``self`` (its weights in 4 bits), ``heads`` that were
        trained for it, or ``model:NAME``.

        None where this machine or model has no such thing. Loaded at the first call and kept.
        Raises `ModelError` ``no-heads``, ``bad-heads``, ``vocab-mismatch`` and those of loading a
        model.
        """
        if name not in self._drafters:
            from apply_edit.target import drafting

            kind, _, model = name.partition(":")
            if kind == "self":
                engine = self.target(on_event)
                self._drafters[name] = drafting.self_drafter(engine, self._resolved, on_event)
            elif kind == "heads":
                engine = self.target(on_event)
                self._drafters[name] = drafting.heads_drafter(engine, self._resolved, on_event)
            else:
                self._drafters[name] = drafting.model_drafter(
                    model,
                    self.name,
                    self._codec,
                    device=self._device,
                    dtype=self._dtype,
                    offline=self._offline,
                    on_event=on_event,
                )
        return self._drafters[name]

    def slot(self, positions: int) -> Engine:
        """See `Slotted`."""
        return self.target(ignore).beside(positions)

    def slot_bytes(self, positions: int) -> int:
        """See `Slotted`."""
        return self.target(ignore).bytes_for(positions)

    def free_bytes(self) -> int | None:
        """See `Slotted`."""
        if self._device.type == "cuda":
            return int(self._torch.cuda.mem_get_info(self._device)[0])
        return available_bytes() if self._device.type == "cpu" else None

    def copy(self, source: Target, target: Target, length: int) -> None:
        """See `Slotted`."""
        from apply_edit.target.engine import Engine

        if not isinstance(source, Engine) or not isinstance(target, Engine):
            raise TypeError("slots of other backends cannot be copied")
        target.take(source, length)

    def together(self, wanted: Sequence[Rows]) -> Sequence[Scores | None]:
        """See `Slotted`."""
        return self.target(ignore).together(wanted)

    def check_drafter(self, name: str) -> None:
        """Raises `ModelError` ``no-heads`` where draft heads are wanted and were not trained."""
        if name == "heads":
            from apply_edit.target.heads import check_trained

            check_trained(self.name, self._resolved.weights_id)

    def facts(self) -> dict[str, str | int]:
        return {
            "model": self._resolved.name,
            "dtype": self._kind,
            "device": str(self._device),
            "threads": self._torch.get_num_threads() if self._device.type == "cpu" else 0,
            "exact": self._calibration.exact if self._calibration else "",
        }

    @property
    def noise(self) -> float:
        """The greatest difference of a logit between passes; 0 where they agree bit for bit."""
        return self._calibration.noise if self._calibration else 0.0

    def costs(self) -> Sequence[tuple[int, float]] | None:
        return self._calibration.costs if self._calibration else None

    def recall(self, target: Target, tokens: Sequence[int]) -> int:
        """See `Recalling`."""
        from apply_edit.target import prefix_cache
        from apply_edit.target.engine import Engine

        if not tokens or not isinstance(target, Engine) or not self._repeats():
            return 0
        target.cache.reserve(len(tokens))
        like = target.cache.read(len(tokens))
        found = prefix_cache.load(self._beginning(tokens), tokens, like)
        if found is None:
            return 0
        target.reset(0)
        with self._torch.inference_mode():
            target.cache.write(found)
        self._known.add(tuple(tokens))
        return len(tokens)

    def retain(self, target: Target, tokens: Sequence[int]) -> None:
        """See `Recalling`."""
        from apply_edit.target import prefix_cache
        from apply_edit.target.engine import Engine

        if not tokens or not isinstance(target, Engine) or not self._repeats():
            return
        if tuple(tokens) not in self._known:
            self._known.add(tuple(tokens))
            prefix_cache.save(self._beginning(tokens), tokens, target.cache.read(len(tokens)))

    def _repeats(self) -> bool:
        """Whether another run on this machine would compute the same bits."""
        on_cpu = self._device.type == "cpu"
        return on_cpu and self._calibration is not None and self._calibration.exact == "bit"

    def _beginning(self, tokens: Sequence[int]) -> Path:
        from apply_edit.target import prefix_cache

        model = f"{self._resolved.weights_id}-{self._kind}"
        return prefix_cache.path_of(cache_root() / "prefix", model, tokens)

    def observe(self, passes: Sequence[tuple[int, float]]) -> None:
        """Forget a cost table that this run has shown to be outdated; the next run measures."""
        from apply_edit.target import calibrate

        if self._calibration and calibrate.outdated(self._calibration, passes):
            self._kept().unlink(missing_ok=True)

    def _load(self, on_event: OnEvent) -> Engine:
        from apply_edit.target import blocks, calibrate
        from apply_edit.target.engine import Engine
        from apply_edit.target.place import fill

        folder = self._resolved.folder
        if self._device.type == "cpu":
            check_memory(folder, self._dtype)
        on_event(Stage("load", 0, None, "tensors"))
        fill(self._model, folder, dtype=self._dtype, device=self._device, on_event=on_event)
        engine = Engine(self._model, window=self._window)
        kept = self._kept()
        found = calibrate.load(kept)
        if found is None:
            found = calibrate.calibrate(engine, vocab=self._vocab, on_event=on_event)
            calibrate.save(kept, found)
        engine.widths = found.widths
        blocks.apply(engine.model, found.most)
        self._calibration = found
        on_event(
            Note(
                f"exactness on this machine: {found.exact} (passes of {found.widths.least} "
                + (
                    f"rows and more differ by up to {found.noise:.2g} in a logit)"
                    if found.noise
                    else "rows and more agree)"
                )
            )
        )
        return engine

    def _kept(self) -> Path:
        """Where the calibration of these weights on this device is kept."""
        place = str(self._device).replace(":", "")
        name = f"{self._resolved.weights_id}-{self._kind}-{place}.json"
        return cache_root() / "calibration" / name


def _use_huge_pages() -> None:
    """Let torch ask Linux for pages of 2 MB: gigabytes of weights take half as long to get, and
    passes find them sooner. It reads this once, so it has to be said before its first tensor."""
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


def _ends(config: Any) -> list[int]:
    """The configuration's end-of-text tokens, one or several."""
    ends = getattr(config, "eos_token_id", None)
    if ends is None:
        return []
    return [ends] if isinstance(ends, int) else list(ends)


def _device(name: str) -> torch.device:
    import torch

    if name == "auto":
        if torch.cuda.is_available():
            name = "cuda"
        elif torch.backends.mps.is_available():
            name = "mps"
        else:
            name = "cpu"
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise UsageError("unknown-device", f"--device {name} cannot be used: {reason}") from error
    return device


def _dtype(name: str, device: torch.device) -> torch.dtype:
    import torch

    if name == "auto":
        if device.type == "cuda":
            fast = torch.cuda.is_bf16_supported()
        elif device.type == "cpu":
            fast = _cpu_has_bf16()
        else:
            fast = True
        return torch.bfloat16 if fast else torch.float32
    kind = getattr(torch, name)
    if not isinstance(kind, torch.dtype):
        raise ModelError("unknown-dtype", f"torch knows no {name}")
    return kind


def _cpu_has_bf16() -> bool:
    """Whether this CPU multiplies bf16 natively; emulated, it is slower than float32."""
    import torch

    probe = getattr(torch.cpu, "get_capabilities", None)
    if probe is None:
        return bool(torch.cpu._is_avx512_bf16_supported())
    found = probe()
    return any(found.get(key) for key in ("avx512_bf16", "amx_bf16", "bf16", "arm_bf16"))

"""Settings and where they come from: flags > environment > pyproject > user file > defaults."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from apply_edit.command.setting import BY_NAME, PREFIX, SETTINGS, Setting, parse, typed
from apply_edit.errors import ConfigError, UsageError
from apply_edit.words import nearest, quote

# Read elsewhere in the package, so not settings, but not misspelt ones either.
OTHER_VARIABLES = frozenset({"APPLY_EDIT_CACHE", "APPLY_EDIT_HOME", "APPLY_EDIT_LOG"})


@dataclass(frozen=True, slots=True)
class Settings:
    """The values in force. None means: decide from the model, the machine or the file."""

    model: str | None = None
    revision: str | None = None
    device: str = "auto"
    dtype: str = "auto"
    max_new_tokens: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    draft: str = "copy"
    k: int | None = None
    verify: bool = False
    timeout: float | None = None
    batch: int | None = None
    offline: bool = False
    encoding: str = "utf-8"
    allow: tuple[str, ...] = ()
    stats: bool = False
    history: bool = False
    verbose: bool = False
    quiet: bool = False
    color: str = "auto"
    progress: bool = True
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Where each value that is no default came from, in words."""

    def said(self, name: str) -> str:
        """What to call setting `name` in a message about its value: where it was set."""
        origin = self.origins.get(name, f"--{name}")
        return origin if origin.startswith(("-", PREFIX)) else f"{name} in {origin}"


def merge(
    flags: Mapping[str, object],
    start: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """The settings in force for a file in folder `start`.

    `flags` maps setting names to texts (or booleans, or lists of texts); None means not given.
    Raises UsageError `bad-value` for a flag, ConfigError `unknown-key`, `bad-value` or
    `bad-config` for the other sources.
    """
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    sources = [_user(environ), _project(start), _environment(environ), _flags(flags)]
    for setting, value, origin in (entry for source in sources for entry in source):
        values[setting.field] = value
        origins[setting.name] = origin
    _settle_pairs(values, origins)
    return Settings(**values, origins=origins)


def _settle_pairs(values: dict[str, Any], origins: dict[str, str]) -> None:
    """-q on the command line beats ``verbose = true`` of a file, and the other way round."""
    if not (values.get("quiet") and values.get("verbose")):
        return
    by_flag = [name for name in ("quiet", "verbose") if origins[name].startswith("-")]
    if len(by_flag) != 1:
        raise UsageError("conflict", "quiet and verbose exclude each other; set one of them")
    values["verbose" if by_flag == ["quiet"] else "quiet"] = False


Entry = tuple[Setting, object, str]


def _flags(flags: Mapping[str, object]) -> Iterator[Entry]:
    for name, raw in flags.items():
        if raw is None or raw == () or raw == []:
            continue
        setting = BY_NAME[name]
        origin = f"--{name}"
        value = parse(setting, raw) if isinstance(raw, str) else typed(setting, raw)
        if value is None:
            raise UsageError("bad-value", f"{origin} takes {setting.wants}, not {quote(raw)}")
        yield setting, _settle(setting, value), origin


def _environment(environ: Mapping[str, str]) -> Iterator[Entry]:
    known = {setting.variable: setting for setting in SETTINGS}
    for variable, raw in environ.items():
        if not variable.startswith(PREFIX) or variable in OTHER_VARIABLES:
            continue
        setting = known.get(variable)
        if setting is None:
            # Without the prefix, which makes every two of them look alike.
            names = [name.removeprefix(PREFIX) for name in (*known, *OTHER_VARIABLES)]
            near = nearest(variable.removeprefix(PREFIX), names, PREFIX)
            raise ConfigError("unknown-key", f"there is no variable {quote(variable)}{near}")
        if raw == "":
            continue  # the shell's way to unset for one command: NAME= cmd
        value = parse(setting, raw)
        if value is None:
            message = f"{variable} takes {setting.wants}, not {quote(raw)}"
            raise ConfigError("bad-value", message)
        yield setting, _settle(setting, value), variable


def _user(environ: Mapping[str, str]) -> Iterator[Entry]:
    path = user_file(environ)
    if path is None:
        return
    try:
        raw = _plain_bytes(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        message = f"{quote(str(path))} cannot be read: {error.strerror}; mend or remove it"
        raise ConfigError("bad-config", message) from error
    yield from _table(_toml(raw, path), path, str(path))


def user_file(environ: Mapping[str, str]) -> Path | None:
    """The user's file, or None where there is no home. A relative XDG_CONFIG_HOME is ignored."""
    base = environ.get("XDG_CONFIG_HOME", "")
    home = environ.get("HOME", "")
    if os.path.isabs(base):  # noqa: PTH117 - a str that may be empty
        return Path(base) / "apply-edit" / "config.toml"
    return Path(home) / ".config" / "apply-edit" / "config.toml" if home else None


def _project(start: Path | None) -> Iterator[Entry]:
    """[tool.apply-edit] of the nearest pyproject.toml that has it, up to the repository's top."""
    if start is None:
        return
    try:
        start = Path(os.path.abspath(start))  # noqa: PTH100 - resolve() would follow links
    except OSError:  # the working folder is gone
        return
    for folder in (start, *start.parents):
        path = folder / "pyproject.toml"
        try:
            raw = _plain_bytes(path)
        except OSError:
            raw = b""
        # A broken pyproject.toml that never speaks of us is not ours to complain about: it may
        # be the very file to be edited.
        if b"apply-edit" in raw:
            tool = _toml(raw, path).get("tool")
            table = tool.get("apply-edit") if isinstance(tool, dict) else None
            if table is not None:
                if not isinstance(table, dict):
                    message = f"tool.apply-edit in {quote(str(path))} must be a table"
                    raise ConfigError("bad-value", message)
                for entry in _table(table, path, f"[tool.apply-edit] of {path}"):
                    if not entry[0].personal:
                        yield entry
                return
        if any(os.path.lexists(folder / mark) for mark in (".git", ".hg")):
            return


def _plain_bytes(path: Path) -> bytes:
    """The bytes of a plain file; a pipe would be waited for, and a device may never end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no plain file", str(path))
    return path.read_bytes()


def _toml(raw: bytes, path: Path) -> dict[str, Any]:
    try:
        import tomllib  # type: ignore[import-not-found,unused-ignore]
    except ModuleNotFoundError:  # Python 3.10
        import tomli as tomllib  # type: ignore[import-not-found,no-redef,unused-ignore]
    try:
        table: dict[str, Any] = tomllib.loads(raw.decode("utf-8"))
    except ValueError as error:  # UnicodeDecodeError and TOMLDecodeError both are
        message = f"{quote(str(path))} is not valid TOML: {error}"
        raise ConfigError("bad-config", message) from error
    return table


def _table(table: Mapping[str, Any], path: Path, origin: str) -> Iterator[Entry]:
    for key, raw in table.items():
        setting = BY_NAME.get(key.replace("_", "-"))
        if setting is None:
            message = f"there is no setting {quote(key)} ({origin}){nearest(key, BY_NAME)}"
            raise ConfigError("unknown-key", message)
        value = typed(setting, raw)
        if value is None:
            message = f"{setting.name} in {origin} takes {setting.wants}, not {quote(raw)}"
            raise ConfigError("bad-value", message)
        if setting.name == "model":
            value = _anchor(str(value), path.parent)
        yield setting, _settle(setting, value), origin


def _anchor(model: str, folder: Path) -> str:
    """A model named by ``./`` or ``../`` in a file is meant from that file's folder."""
    scheme, path = ("replay:", model[7:]) if model.startswith("replay:") else ("", model)
    if path.startswith(("./", "../")):
        return scheme + os.path.normpath(folder / path)
    return model


def _settle(setting: Setting, value: object) -> object:
    return None if setting.kind == "k" and value == "auto" else value


def differing(one: Settings, other: Settings) -> list[str]:
    """Names of the settings in which two differ."""
    names = [f.name for f in fields(Settings) if f.name != "origins"]
    return [n.replace("_", "-") for n in names if getattr(one, n) != getattr(other, n)]

# ruff: noqa: E501 - rows of Markdown tables cannot be broken
"""docs/cli.md, made from the command itself: ``python -m apply_edit.command.reference``.

A test compares the file with what this makes, so that the two cannot drift apart.
"""

from __future__ import annotations

import sys
from typing import Any

import typer

from apply_edit.command.arguments import HELP, PANELS, edit_app
from apply_edit.command.arguments_models import models_app
from apply_edit.command.arguments_stats import stats_app
from apply_edit.command.setting import SETTINGS, Setting
from apply_edit.config import Settings

HEAD = """# The command

This page is made from the command by `python -m apply_edit.command.reference > docs/cli.md`.

```
apply-edit FILE... (-i TEXT | --instruction-file PATH | -u PATH) [OPTIONS]
apply-edit models [pull NAME... | rm NAME... | train-heads NAME [FOLDER...]]
apply-edit stats [OPTIONS]
```
"""

CONTRACT = """
## What callers can rely on

1. Bytes in, bytes out. Nothing is on standard output but the answer, written once, after every
   check has passed; what libraries print goes elsewhere.
2. Exit code 0 means that the answer is complete, and only 0 means that.
3. With FILE `-` a failure writes the input back unchanged and exits with 2, so that an editor's
   filter that ignores exit codes keeps its buffer. This holds where the answer would be the file:
   not with `--diff`, `--check`, `--json` or `-o`. With a named FILE a failure leaves standard
   output empty.
4. Standard input is read only where `-` is given.
5. A signal leaves no temporary file and no changed file. A second one ends the run at once. One
   that comes during the final saves comes too late: they are finished, and the run ends as usual.
6. The live display is on standard error, only on a terminal, and gone when the answer is printed.

Several FILEs are one edit: nothing is written or printed unless every one came out. `-w` does not
touch a file that does not change, and refuses one that changed on disk meanwhile. Where the save
of one of several FILEs fails, those before it are taken back. Results that could not be written are
put beside their files, as `FILE.edited`, and the message says so. `--check` may be joined with
`--diff`. `--timeout` is for each FILE, of several that share passes for its share of them; for the
first one it counts from the call on: fetching, converting and loading the model and measuring the
machine are part of it, and the message says which of them took the time. What was fetched until then is kept, so that the next run goes on from there; `apply-edit models pull` fetches
without a limit. The words `models`, `serve` and
`stats` are commands; a file of such a name is `./models`.

| exit code | meaning |
| --- | --- |
| 0 | done, whether the file changes or not |
| 1 | only with `--check`: the file would change |
| 2 | usage, refusal or failure: one line on standard error says what, and what to do |
| 130, 143, 129 | ended by SIGINT, SIGTERM, SIGHUP |
| 141 | the reader of standard output went away (as with `cat` or `git`); nothing is said |

An error is one line, `apply-edit: error: SENTENCE [CODE]`. The code is stable. A traceback is
shown only with `-v`, and only for `internal`, an error that nobody foresaw.

## `--json`

One object on standard output, also when the edit fails. With several FILEs, the object has
`status`, `code` and `message` of the first failure, and one object for each FILE in `files`.

| field | value |
| --- | --- |
| `schema` | 1; a change that breaks readers raises it |
| `version` | of apply-edit |
| `status` | `ok`, `refused` (a damaged answer) or `error` |
| `code`, `message` | why not, else null |
| `file` | the name, escaped; `file_base64` has its bytes where escapes were needed |
| `changed` | whether the edit changes the file; null on failure |
| `output`, `output_encoding` | the rewritten file: `utf-8`, or `base64` where it is no UTF-8; null with `--diff`, `--check`, `-w`, `-o` |
| `diff`, `diff_encoding` | the diff, with `--diff` |
| `written` | the path written with `-w` or `-o`; null where nothing was |
| `allowed` | the codes that `--allow` let through |
| `stats` | the figures of the run, times in seconds |

`apply-edit models --json` has `schema`, `cache`, `default` and `models`, a list of objects with
`name`, `title`, `licence`, `download_bytes`, `disk_bytes`, `state` (`present`, `partial` or
`absent`), `bytes` (on disk now), `heads` (whether draft heads were trained), `folder` and `note`. `apply-edit stats --json` has `schema`,
`version`, `runs`, `skipped` (lines of the history that could not be read), `by` and `groups`, whose
objects have a field for each name in `by`, `runs`, `refused`, and for the runs that came out
`acceptance`, `tokens_per_pass`, `first_run_seconds` and `last_token_seconds` (each with `p50` and
`p95`) and `over_floor` (the median). What `--report` writes is in [report.md](report.md).
"""

SETTINGS_HEAD = """
## Configuration

A flag beats the environment, the environment beats `[tool.apply-edit]` in the nearest
`pyproject.toml` that has such a table (looked for from the folder of FILE up to the top of its
repository), that beats the user's `$XDG_CONFIG_HOME/apply-edit/config.toml` (else
`~/.config/apply-edit/config.toml`), and that beats the default. Keys are written with dashes or
underscores. A wrong key or value is an error. A model named by `./` or `../` in a file is meant
from the folder of that file. `-v` says where each value came from. Whether to keep a history is the
user's own say: `history` in a `pyproject.toml` has no effect.

| key | environment | value | default |
| --- | --- | --- | --- |
"""


def reference() -> str:
    """The whole page."""
    command = typer.main.get_command(edit_app)
    context = command.make_context("apply-edit", [], resilient_parsing=True)
    parts = [HEAD, "\n" + " ".join(HELP.split()) + "\n"]
    sections: dict[str, list[Any]] = {name: [] for name in PANELS}
    for param in command.params:
        if param.param_type_name == "option":
            sections.setdefault(getattr(param, "rich_help_panel", None) or "More", []).append(param)
    for name, params in sections.items():
        parts.append(f"\n## {name}\n\n| option | |\n| --- | --- |\n")
        parts += [_row(param, context) for param in params]
    parts.append("\n## apply-edit models\n\n```\n")
    parts += _models_help()
    parts.append("```\n")
    parts += _stats_help()
    parts += [CONTRACT, SETTINGS_HEAD, *(_setting(setting) for setting in SETTINGS)]
    return "".join(parts)


def _row(param: Any, context: Any) -> str:
    record = param.get_help_record(context)
    words, text = record if record is not None else ("", "")
    return f"| `{_cell(words)}` | {_cell(text)} |\n"


def _setting(setting: Setting) -> str:
    default = getattr(Settings(), setting.field)
    if isinstance(default, bool):
        shown = str(default).lower()
    else:
        shown = "auto" if setting.kind == "k" else str(default if default not in (None, ()) else "")
    return f"| `{setting.name}` | `{setting.variable}` | {_cell(setting.wants)} | {shown} |\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _stats_help() -> list[str]:
    command: Any = typer.main.get_command(stats_app)
    context = command.make_context("apply-edit stats", [], resilient_parsing=True)
    text = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    options = [param for param in command.params if param.param_type_name == "option"]
    head = f"\n## apply-edit stats\n\n{text}\n\n| option | |\n| --- | --- |\n"
    return [head, *(_row(param, context) for param in options)]


def _usage(param: Any) -> str:
    """An option or argument as a usage line names it."""
    if param.param_type_name == "option":
        return f"[{param.opts[0]}]"
    return str(param.metavar) if param.required else f"[{param.metavar}...]"


def _models_help() -> list[str]:
    group: Any = typer.main.get_command(models_app)
    context = group.make_context("apply-edit models", [], resilient_parsing=True)
    lines = [f"apply-edit models [--json]   {' '.join((group.help or '').split())}\n"]
    for name in group.list_commands(context):
        action = group.get_command(context, name)
        usage = " ".join(_usage(param) for param in action.params)
        text = "\n".join(f"    {line}" for line in (action.help or "").splitlines() if line)
        lines.append(f"apply-edit models {name} {usage}\n{text}\n")
    return lines


if __name__ == "__main__":
    sys.stdout.write(reference())

"""Arguments in, an `Order` out: options, help and completion. Runs nothing itself."""

from __future__ import annotations

from collections.abc import Sequence
from shutil import get_terminal_size
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from apply_edit import __version__
from apply_edit.command.complete import (
    complete_code,
    complete_draft,
    complete_file,
    complete_model,
    one_of,
)
from apply_edit.command.order import Order
from apply_edit.command.setting import BY_NAME
from apply_edit.command.streams import no_more
from apply_edit.errors import UsageError
from apply_edit.options import BATCH
from apply_edit.words import nearest, one_line, quote

EDIT, ANSWER, MODEL, DECODING, TALK = (
    "The edit",
    "The answer",
    "The model",
    "Decoding",
    "What is said",
)
PANELS = (EDIT, ANSWER, MODEL, DECODING, TALK)

HELP = """Let a local language model edit FILE: the edit is an instruction in words, or a sketch of
the new code with "... existing code ..." lines. The rewritten file goes to standard output, whole
or not at all.
"""
EPILOG = """\b
apply-edit models            lists, fetches and removes models (a file of that name: ./models)
apply-edit stats             shows what past runs gained, if --history kept them

Exit codes: 0 done, changed or not; 1 --check would change something; 2 usage, refusal or failure;
130, 143 ended by a signal; 141 the reader of the output went away.

Every long option of the model, decoding and talk sections can also be set as APPLY_EDIT_NAME, in
[tool.apply-edit] of pyproject.toml, or in ~/.config/apply-edit/config.toml.
"""


class Sections(TyperCommand):
    """A command whose help groups the options under headings."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["FILE...", "(-i TEXT | --instruction-file PATH | -u PATH)", "[OPTIONS]"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in PANELS}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None or param.param_type_name == "argument":
                continue
            panel = getattr(param, "rich_help_panel", None) or "More"
            sections.setdefault(panel, []).append(record)
        room = 30 if formatter.width >= 60 else formatter.width // 3 if formatter.width > 30 else 4
        for name, records in sections.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records, col_max=room)


def new_app(**more: Any) -> typer.Typer:
    """A typer app of ours."""
    # rich help costs a tenth of a second and breaks in narrow windows.
    settings: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
    columns = get_terminal_size().columns
    if columns < 52:  # typer itself would not go below, and the terminal break its lines
        settings["terminal_width"] = max(columns - 1, 20)
    return typer.Typer(
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=settings,
        **more,
    )


edit_app = new_app()


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"apply-edit {__version__}")
        raise typer.Exit


def _opt(panel: str, *names: str, help: str, metavar: str | None = None, **more: Any) -> Any:  # noqa: A002
    return typer.Option(
        *names, help=help, metavar=metavar, rich_help_panel=panel, show_default=False, **more
    )


@edit_app.command(cls=Sections, help=HELP, epilog=EPILOG)
def edit(
    file: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", autocompletion=complete_file, show_default=False),
    ] = None,
    instruction: Annotated[
        str | None,
        _opt(EDIT, "--instruction", "-i", metavar="TEXT", help="what to change, in words"),
    ] = None,
    instruction_file: Annotated[
        str | None,
        _opt(
            EDIT, "--instruction-file", metavar="PATH", help="read the instruction there (-: stdin)"
        ),
    ] = None,
    update: Annotated[
        str | None,
        _opt(
            EDIT,
            "--update",
            "-u",
            metavar="PATH",
            help='a sketch of the new code, with "... existing code ..." lines (-: stdin)',
        ),
    ] = None,
    lines: Annotated[
        str | None,
        _opt(EDIT, "--lines", metavar="A:B", help="rewrite only these lines; the rest is context"),
    ] = None,
    stdin_filename: Annotated[
        str | None,
        _opt(EDIT, "--stdin-filename", metavar="PATH", help="what the text of FILE - is called"),
    ] = None,
    encoding: Annotated[
        str | None,
        _opt(EDIT, "--encoding", metavar="NAME", help="how FILE is encoded [utf-8]"),
    ] = None,
    allow: Annotated[
        list[str] | None,
        _opt(
            EDIT,
            "--allow",
            metavar="CODE",
            autocompletion=complete_code,
            help="accept an answer refused with this code; may be repeated",
        ),
    ] = None,
    diff: Annotated[
        bool, _opt(ANSWER, "--diff", help="print a diff for git apply or patch instead")
    ] = False,
    write: Annotated[bool, _opt(ANSWER, "--write", "-w", help="rewrite FILE in place")] = False,
    output: Annotated[
        str | None, _opt(ANSWER, "--output", "-o", metavar="PATH", help="write there instead")
    ] = None,
    check: Annotated[
        bool, _opt(ANSWER, "--check", help="write nothing; exit 1 if FILE would change")
    ] = False,
    json: Annotated[
        bool, _opt(ANSWER, "--json", help="print one JSON object: status, output or diff, figures")
    ] = False,
    report: Annotated[
        str | None,
        _opt(
            ANSWER,
            "--report",
            metavar="PATH",
            help="also write how the answer came about, as a page (.html) or as data (.json)",
        ),
    ] = None,
    model: Annotated[
        str | None,
        _opt(
            MODEL,
            "--model",
            "-m",
            metavar="MODEL",
            autocompletion=complete_model,
            help="a name of `apply-edit models`, a hub id, a folder, a GGUF file, or replay:PATH",
        ),
    ] = None,
    revision: Annotated[
        str | None, _opt(MODEL, "--revision", metavar="REV", help="of a model on the hub")
    ] = None,
    device: Annotated[
        str | None,
        _opt(
            MODEL,
            "--device",
            metavar="DEVICE",
            autocompletion=one_of("auto", "cpu", "cuda", "mps"),
            help="auto, cpu, cuda, cuda:N or mps [auto]",
        ),
    ] = None,
    dtype: Annotated[
        str | None,
        _opt(
            MODEL,
            "--dtype",
            metavar="DTYPE",
            autocompletion=one_of("auto", "bfloat16", "float16", "float32"),
            help="auto, bfloat16, float16 or float32 [auto]",
        ),
    ] = None,
    offline: Annotated[
        bool | None, _opt(MODEL, "--offline/--no-offline", help="never use the network")
    ] = None,
    max_new_tokens: Annotated[
        str | None,
        _opt(DECODING, "--max-new-tokens", metavar="N", help="budget [from the file's length]"),
    ] = None,
    temperature: Annotated[
        str | None, _opt(DECODING, "--temperature", metavar="T", help="0 is greedy [0]")
    ] = None,
    top_p: Annotated[
        str | None, _opt(DECODING, "--top-p", metavar="P", help="nucleus of the sampling [1]")
    ] = None,
    top_k: Annotated[
        str | None,
        _opt(DECODING, "--top-k", metavar="N", help="sample from the N likeliest [0: all]"),
    ] = None,
    seed: Annotated[
        str | None, _opt(DECODING, "--seed", metavar="N", help="of sampling [0]")
    ] = None,
    draft: Annotated[
        str | None,
        _opt(
            DECODING,
            "--draft",
            metavar="DRAFT",
            autocompletion=complete_draft,
            help="where drafts come from: auto, copy, self, model:NAME or none; changes speed, "
            "never output [copy]",
        ),
    ] = None,
    k: Annotated[
        str | None, _opt(DECODING, "--k", metavar="auto|N", help="length of drafts [auto]")
    ] = None,
    verify: Annotated[
        bool | None,
        _opt(DECODING, "--verify/--no-verify", help="decode plainly too and compare the tokens"),
    ] = None,
    timeout: Annotated[
        str | None,
        _opt(
            DECODING,
            "--timeout",
            metavar="SECONDS",
            help="give up on a FILE after that long; fetching and loading the model count, too",
        ),
    ] = None,
    batch: Annotated[
        str | None,
        _opt(
            DECODING,
            "--batch",
            metavar="N",
            help=f"FILEs that share the model's passes; 1: one after another [{BATCH}]",
        ),
    ] = None,
    stats: Annotated[
        bool | None, _opt(TALK, "--stats/--no-stats", help="print the run's figures on stderr")
    ] = None,
    history: Annotated[
        bool | None,
        _opt(
            TALK,
            "--history/--no-history",
            help="keep the run's figures for `apply-edit stats`; no names or contents",
        ),
    ] = None,
    verbose: Annotated[
        bool | None, _opt(TALK, "--verbose", "-v", help="say what is decided and why")
    ] = None,
    quiet: Annotated[
        bool | None, _opt(TALK, "--quiet", "-q", help="say nothing but errors")
    ] = None,
    color: Annotated[
        str | None,
        _opt(
            TALK,
            "--color",
            metavar="WHEN",
            autocompletion=one_of("auto", "always", "never"),
            help="auto, always or never [auto]",
        ),
    ] = None,
    progress: Annotated[
        bool | None, _opt(TALK, "--progress/--no-progress", help="the live display on terminals")
    ] = None,
    version: Annotated[
        bool, _opt(TALK, "--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> Order:
    given = locals()
    return Order(
        files=tuple(file or ()),
        instruction=instruction,
        instruction_file=instruction_file,
        update=update,
        stdin_filename=stdin_filename,
        diff=diff,
        write=write,
        output=output,
        check=check,
        lines=lines,
        json=json,
        report=report,
        flags={name: given[setting.field] for name, setting in BY_NAME.items()},
    )


def parse(argv: Sequence[str]) -> Order | None:
    """The order that the arguments of an edit give; None when help or the like was printed.

    Raises UsageError, in words of ours, where they do not parse.
    """
    result = call(edit_app, argv, "apply-edit")
    return result if isinstance(result, Order) else None


def call(app: typer.Typer, argv: Sequence[str], name: str, **more: Any) -> Any:
    """Run a typer app; what it dislikes is raised as UsageError."""
    try:
        return app(args=list(argv), prog_name=name, standalone_mode=False, **more)
    except SystemExit as error:
        # typer's answer to a reader that is gone is exit code 1, which here says something else.
        if isinstance(error.__context__, BrokenPipeError):
            raise error.__context__ from None
        raise
    except BrokenPipeError:
        raise
    except OSError as error:  # help or the version, printed onto a full disk
        raise no_more(error) from error
    except Exception as error:
        # The classes live in click or inside typer, as the version will have it.
        if not hasattr(error, "format_message"):
            raise
        raise _usage_error(error, app) from error


def _usage_error(error: Any, app: typer.Typer) -> UsageError:
    kind = type(error).__name__
    option = str(getattr(error, "option_name", ""))
    if kind == "NoSuchOption":
        words = f"there is no option {quote(option)[1:-1]}{nearest(option, _options(app))}"
        return UsageError("unknown-option", words)
    text = one_line(error.format_message()).rstrip(".") or "this does not parse; see --help"
    code = "bad-option" if kind == "BadOptionUsage" else "usage"
    return UsageError(code, text[:1].lower() + text[1:])


def _options(app: typer.Typer) -> list[str]:
    command = typer.main.get_command(app)
    names = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    return sorted(name for name in names if name.startswith("--"))

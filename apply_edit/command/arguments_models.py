"""Arguments of `apply-edit models` and its actions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated

import typer

from apply_edit.command.arguments import call, new_app
from apply_edit.command.complete import complete_model
from apply_edit.command.models import ModelsOrder
from apply_edit.errors import UsageError
from apply_edit.words import nearest, quote

# Its completion is installed with the whole command's; it is needed only to answer the shell.
models_app = new_app(add_completion="_APPLY_EDIT_COMPLETE" in os.environ)

ACTIONS = ("pull", "rm", "train-heads")

Names = Annotated[
    list[str],
    typer.Argument(metavar="NAME...", autocompletion=complete_model, show_default=False),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="say nothing but errors")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="say what is done and why")]


@models_app.callback(invoke_without_command=True)
def models(
    context: typer.Context,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> ModelsOrder | None:
    """List the models that have names: size, licence, and whether they are here.

    Other models need no name: --model also takes a hub id, a folder and a GGUF file.
    """
    return ModelsOrder("list", json=json) if context.invoked_subcommand is None else None


@models_app.command()
def pull(
    names: Names,
    offline: Annotated[bool, typer.Option("--offline", help="never use the network")] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> ModelsOrder:
    """Fetch models into the cache now, so that no edit has to wait for them."""
    flags = (("offline", offline or None), ("quiet", quiet or None), ("verbose", verbose or None))
    return ModelsOrder("pull", tuple(names), flags=flags)


@models_app.command()
def rm(names: Names, quiet: Quiet = False) -> ModelsOrder:
    """Remove models from the cache."""
    return ModelsOrder("rm", tuple(names), flags=(("quiet", quiet or None),))


@models_app.command("train-heads")
def train_heads(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", autocompletion=complete_model, show_default=False),
    ],
    folders: Annotated[
        list[str] | None, typer.Argument(metavar="FOLDER", show_default=False)
    ] = None,
    minutes: Annotated[
        str | None,
        typer.Option("--minutes", metavar="N", help="how long it may take [40]"),
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="never use the network")] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> ModelsOrder:
    """Train draft heads for --draft heads, on edits the model writes of the source files here.

    In a git work tree the files that git tracks below FOLDER (default: here). What the model
    wrote is deleted afterwards; a run that was ended goes on where it was.
    """
    flags = (("offline", offline or None), ("quiet", quiet or None), ("verbose", verbose or None))
    return ModelsOrder(
        "train-heads", (name,), flags=flags, folders=tuple(folders or (".",)), minutes=minutes
    )


def parse_models(argv: Sequence[str]) -> ModelsOrder | None:
    """The order that the arguments give; None when help was printed. Raises UsageError."""
    first = next((word for word in argv if not word.startswith("-")), "")
    if first not in ("", *ACTIONS):
        near = nearest(first, ACTIONS)
        words = f"`models` has no action {quote(first)}{near or '; it has pull, rm, train-heads'}"
        raise UsageError("usage", words)
    result = call(models_app, argv, "apply-edit models")
    return result if isinstance(result, ModelsOrder) else None

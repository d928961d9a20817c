"""Arguments of `apply-edit models` and its two actions."""

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


def parse_models(argv: Sequence[str]) -> ModelsOrder | None:
    """The order that the arguments give; None when help was printed. Raises UsageError."""
    first = next((word for word in argv if not word.startswith("-")), "")
    if first not in ("", "pull", "rm"):
        near = nearest(first, ("pull", "rm"))
        words = f"`models` has no action {quote(first)}{near or '; it has pull and rm'}"
        raise UsageError("usage", words)
    result = call(models_app, argv, "apply-edit models")
    return result if isinstance(result, ModelsOrder) else None

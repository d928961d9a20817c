"""Where settings come from, and which values are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from apply_edit.command.setting import SETTINGS, parse, typed
from apply_edit.config import Settings, differing, merge
from apply_edit.errors import ConfigError, UsageError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a folder in it."""
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "src").mkdir()
    return tmp_path / "repo"


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment whose user file can be written at ``home/apply-edit/config.toml``."""
    (tmp_path / "home" / "apply-edit").mkdir(parents=True)
    return {"XDG_CONFIG_HOME": str(tmp_path / "home")}


def test_nothing_set_gives_the_defaults(project: Path) -> None:
    assert merge({}, project / "src", {}) == Settings()


def test_precedence_from_flags_down_to_defaults(project: Path, home: dict[str, str]) -> None:
    user = Path(home["XDG_CONFIG_HOME"], "apply-edit", "config.toml")
    user.write_text('model = "user"\ndraft = "none"\nseed = 1\ntemperature = 0.5\n')
    (project / "pyproject.toml").write_text(
        '[tool.apply-edit]\nmodel = "project"\ndraft = "copy"\nseed = 2\n'
    )
    environ = {**home, "APPLY_EDIT_MODEL": "environment", "APPLY_EDIT_DRAFT": "none"}
    settings = merge({"model": "flag"}, project / "src", environ)
    assert (settings.model, settings.draft) == ("flag", "none")
    assert (settings.seed, settings.temperature, settings.top_p) == (2, 0.5, 1.0)
    assert settings.origins["model"] == "--model"
    assert settings.origins["draft"] == "APPLY_EDIT_DRAFT"
    assert str(project / "pyproject.toml") in settings.origins["seed"]
    assert settings.origins["temperature"] == str(user)
    assert "top-p" not in settings.origins


def test_the_nearest_pyproject_with_our_table_counts(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.apply-edit]\nseed = 1\n")
    (project / "src" / "pyproject.toml").write_text("[tool.other]\nseed = 2\n")
    assert merge({}, project / "src", {}).seed == 1
    (project / "src" / "pyproject.toml").write_text("[tool.apply-edit]\n")
    assert merge({}, project / "src", {}).seed == 0


def test_the_search_ends_at_the_top_of_the_repository(project: Path) -> None:
    (project.parent / "pyproject.toml").write_text("[tool.apply-edit]\nseed = 1\n")
    assert merge({}, project / "src", {}).seed == 0
    assert merge({}, project.parent, {}).seed == 1


def test_a_relative_start_is_meant_from_the_working_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "pyproject.toml").write_text("[tool.apply-edit]\nseed = 1\n")
    monkeypatch.chdir(project / "src")
    assert merge({}, Path(), {}).seed == 1


def test_a_broken_pyproject_that_does_not_speak_of_us_is_none_of_our_business(
    project: Path,
) -> None:
    (project / "pyproject.toml").write_text("[tool.other\n")
    assert merge({}, project, {}) == Settings()
    (project / "pyproject.toml").write_text("[tool.apply-edit\n")
    with pytest.raises(ConfigError, match="not valid TOML") as caught:
        merge({}, project, {})
    assert caught.value.code == "bad-config"


@pytest.mark.parametrize("key", ["max-new-tokens", "max_new_tokens"])
def test_keys_with_dashes_or_underscores(project: Path, key: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.apply-edit]\n{key} = 7\n")
    assert merge({}, project, {}).max_new_tokens == 7


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("modle = 'x'", "did you mean model?"),
        ("instruction = 'x'", "no setting 'instruction'"),
        ("maxnewtokens = 3", "did you mean max-new-tokens?"),
    ],
)
def test_an_unknown_key_is_an_error_with_the_nearest_right_one(
    project: Path, toml: str, said: str
) -> None:
    (project / "pyproject.toml").write_text(f"[tool.apply-edit]\n{toml}\n")
    with pytest.raises(ConfigError) as caught:
        merge({}, project, {})
    assert caught.value.code == "unknown-key"
    assert said in caught.value.message
    assert str(project / "pyproject.toml") in caught.value.message


def test_an_unknown_variable_is_an_error_too() -> None:
    with pytest.raises(ConfigError, match="did you mean APPLY_EDIT_MODEL") as caught:
        merge({}, None, {"APPLY_EDIT_MODLE": "x"})
    assert caught.value.code == "unknown-key"


def test_variables_of_other_parts_are_not_unknown() -> None:
    assert merge({}, None, {"APPLY_EDIT_CACHE": "/tmp/x"}) == Settings()


def test_an_empty_variable_is_an_unset_one() -> None:
    assert merge({}, None, {"APPLY_EDIT_SEED": ""}) == Settings()


@pytest.mark.parametrize(
    "toml",
    [
        "seed = '3'",
        "seed = true",
        "seed = -1",
        "seed = 1.0",
        "offline = 'yes'",
        "offline = 1",
        "temperature = 'hot'",
        "temperature = nan",
        "temperature = inf",
        "top-p = 0",
        "top-p = 1.5",
        "timeout = 0",
        "k = 'many'",
        "k = -1",
        "color = 'blue'",
        "allow = 'lost'",
        "allow = ['']",
        "model = ''",
        "model = 3",
        "max-new-tokens = 0",
    ],
)
def test_a_value_of_the_wrong_kind_in_a_file(project: Path, toml: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.apply-edit]\n{toml}\n")
    with pytest.raises(ConfigError) as caught:
        merge({}, project, {})
    assert caught.value.code == "bad-value"
    assert toml.split(" ")[0] in caught.value.message


def test_our_table_must_be_a_table(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool]\napply-edit = 3\n")
    with pytest.raises(ConfigError, match="must be a table"):
        merge({}, project, {})


@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("seed", "7", 7),
        ("temperature", "0.5", 0.5),
        ("k", "auto", None),
        ("k", "32", 32),
        ("offline", "1", True),
        ("offline", "No", False),
        ("allow", "lost, elided", ("lost", "elided")),
        ("color", "never", "never"),
    ],
)
def test_texts_of_the_environment_become_values(name: str, raw: str, value: object) -> None:
    settings = merge({}, None, {f"APPLY_EDIT_{name.upper()}": raw})
    assert getattr(settings, name.replace("-", "_")) == value


@pytest.mark.parametrize(
    ("name", "raw"),
    [("seed", "x"), ("seed", "1.5"), ("k", "0x3"), ("timeout", "-1"), ("offline", "maybe")],
)
def test_bad_texts_name_the_variable_or_the_flag(name: str, raw: str) -> None:
    with pytest.raises(ConfigError, match=f"APPLY_EDIT_{name.upper()}") as caught:
        merge({}, None, {f"APPLY_EDIT_{name.upper()}": raw})
    assert caught.value.code == "bad-value"
    with pytest.raises(UsageError, match=f"--{name} takes") as usage:
        merge({name: raw}, None, {})
    assert usage.value.code == "bad-value"


def test_a_flag_can_undo_what_a_file_says(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.apply-edit]\noffline = true\nk = 8\n")
    settings = merge({"offline": False, "k": "auto"}, project, {})
    assert (settings.offline, settings.k) == (False, None)


def test_quiet_and_verbose(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.apply-edit]\nverbose = true\n")
    settings = merge({"quiet": True}, project, {})
    assert (settings.quiet, settings.verbose) == (True, False)
    with pytest.raises(UsageError) as caught:
        merge({"quiet": True, "verbose": True}, None, {})
    assert caught.value.code == "conflict"


@pytest.mark.parametrize("prefix", ["", "replay:"])
def test_a_model_named_by_a_relative_path_is_meant_from_the_file(
    project: Path, prefix: str
) -> None:
    (project / "pyproject.toml").write_text(f'[tool.apply-edit]\nmodel = "{prefix}./m/one"\n')
    assert merge({}, project / "src", {}).model == f"{prefix}{project / 'm' / 'one'}"
    (project / "pyproject.toml").write_text('[tool.apply-edit]\nmodel = "owner/one"\n')
    assert merge({}, project / "src", {}).model == "owner/one"


@pytest.mark.parametrize(
    ("environ", "relative"),
    [
        ({"HOME": "H"}, ".config/apply-edit/config.toml"),
        ({"HOME": "H", "XDG_CONFIG_HOME": "relative"}, ".config/apply-edit/config.toml"),
        ({"HOME": "H", "XDG_CONFIG_HOME": ""}, ".config/apply-edit/config.toml"),
    ],
)
def test_where_the_users_file_is(tmp_path: Path, environ: dict[str, str], relative: str) -> None:
    path = tmp_path / relative
    path.parent.mkdir(parents=True)
    path.write_text("seed = 9\n")
    assert merge({}, None, {**environ, "HOME": str(tmp_path)}).seed == 9


def test_a_home_is_not_needed() -> None:
    assert merge({}, None, {}) == Settings()


def test_the_users_file_must_be_one(tmp_path: Path) -> None:
    (tmp_path / "apply-edit" / "config.toml").mkdir(parents=True)
    with pytest.raises(ConfigError) as caught:
        merge({}, None, {"XDG_CONFIG_HOME": str(tmp_path)})
    assert caught.value.code == "bad-config"


def test_every_setting_is_a_field_with_a_default_of_its_kind() -> None:
    defaults = Settings()
    for setting in SETTINGS:
        value = getattr(defaults, setting.field)
        if value is not None and setting.kind != "list":
            assert typed(setting, value) == value
            if setting.kind != "flag":
                assert parse(setting, str(value)) == value


def test_differing_names_settings_not_origins() -> None:
    one, other = merge({"seed": "1"}, None, {}), merge({}, None, {"APPLY_EDIT_SEED": "1"})
    assert differing(one, other) == []
    assert differing(one, merge({"top-p": "0.5"}, None, {})) == ["top-p", "seed"]

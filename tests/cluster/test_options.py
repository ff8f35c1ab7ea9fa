"""Options, variables and the token of a cluster, without Ray."""

from pathlib import Path
from typing import Any

import pytest
from tutti_ray.environment import ensure_token, missing_variables, variables
from tutti_ray.options import DRAIN_S, parse_options

from tutti.errors import InvalidInput


@pytest.mark.parametrize(
    ("args", "param"),
    [
        ({"replicas": 0}, "replicas"),
        ({"replica": 2}, "replica"),
        ({"replicas": 4, "max_replicas": 2}, "max_replicas"),
        ({"settings": {"port": "many"}}, "port"),
        ({"settings": {"no_such": 1}}, "no_such"),
        ({"settings": {"workers": 2}}, "workers"),
        ({"settings": {"wyoming_port": 10200}}, "wyoming_port"),
    ],
)
def test_a_wrong_option_is_named(args: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_options(args)
    assert caught.value.param == param


def test_a_replica_uses_the_cores_that_ray_gives_it() -> None:
    assert parse_options({"cpus": 3}).server_settings.threads == 3
    assert parse_options({"cpus": 3, "settings": {"threads": 2}}).server_settings.threads == 2


def test_streams_have_time_to_end_when_a_replica_is_replaced() -> None:
    assert parse_options({}).server_settings.grace_s == DRAIN_S
    assert parse_options({"settings": {"grace_s": 5}}).server_settings.grace_s == 5


def test_the_environment_of_a_machine_counts_less_than_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUTTI_API_KEYS", "secret")
    monkeypatch.setenv("TUTTI_GRACE_S", "7")
    settings = parse_options({"settings": {"grace_s": 9}}).server_settings
    assert [key.get_secret_value() for key in settings.api_keys] == ["secret"]
    assert settings.grace_s == 9
    assert settings.model_dump(exclude_unset=True).keys() == {"api_keys", "grace_s", "replica", "threads"}


def test_every_process_asks_for_the_token() -> None:
    for ingress in ("proxy", "haproxy"):
        assert variables(ingress)["RAY_AUTH_MODE"] == "token"  # type: ignore[arg-type]


def test_what_the_operator_sets_stays() -> None:
    missing = missing_variables("proxy", {"RAY_worker_niceness": "5"})
    assert "RAY_worker_niceness" not in missing
    assert missing["RAY_SERVE_USE_GRPC_BY_DEFAULT"] == "1"


def test_the_token_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "ray" / "token"
    environ = {"RAY_AUTH_TOKEN_PATH": str(path)}
    ensure_token(environ)
    token = path.read_text()
    assert len(token) == 64
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    ensure_token(environ)
    assert path.read_text() == token
    assert path.stat().st_mode & 0o777 == 0o600


def test_no_token_file_is_made_beside_a_token_in_the_environment(tmp_path: Path) -> None:
    ensure_token({"RAY_AUTH_TOKEN": "secret", "RAY_AUTH_TOKEN_PATH": str(tmp_path / "token")})
    assert not list(tmp_path.iterdir())

"""API keys, rate limits and origins."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from tests.fakes import FakeEngine
from tests.server.harness import RunningServer, assert_error, serving
from tutti.errors import InvalidInput
from tutti.server.errors import InvalidKey, RateLimited
from tutti.server.middleware.auth import ApiKeys
from tutti.server.middleware.rate_limit import MAX_CALLERS, RateLimit
from tutti.settings import Settings


@pytest.mark.server
@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer x", "Basic abc", "nonsense"])
def test_without_keys_any_authorization_is_accepted(server: RunningServer, header: str | None) -> None:
    response = server.post(
        "/v1/audio/speech", {"input": "deep"}, headers={} if header is None else {"authorization": header}
    )
    assert response.status_code == 200


@pytest.mark.server
def test_only_configured_keys_are_accepted_plain_or_hashed(fake_engine: FakeEngine) -> None:
    digest = sha256(b"second").hexdigest()
    with serving(fake_engine, api_keys=f"first, sha256:{digest}") as server:
        for key in ("first", "second"):
            headers = {"authorization": f"Bearer {key}"}
            assert server.post("/v1/audio/speech", {"input": "deep"}, headers=headers).status_code == 200
        for wrong in (
            "Bearer third",
            "Bearer",
            "",
            f"Bearer {digest}",
            "Basic first",
            "first",
            "Bearer firs",
            "Bearer ü",
        ):
            response = server.post("/v1/audio/speech", {"input": "deep"}, headers={"authorization": wrong.encode()})
            assert_error(response, 401, "invalid_api_key")
            assert response.headers["www-authenticate"] == "Bearer"
        for path in (
            "/tts",
            "/tts/batch",
            "/tts/stream",
            "/test/batching",
            "/dev/phonemize",
            "/dev/dialogue",
            "/v1/audio/dialogue",
            "/dev/ssml",
            "/v1/audio/voices/combine",
        ):
            assert_error(server.post(path, {"text": "deep"}), 401, "invalid_api_key")
        callers = {request["caller"] for request in fake_engine.requests}
        assert len(callers) == 2
        assert not callers & {"first", "second", digest}


def test_a_key_is_never_shown() -> None:
    assert "hush" not in repr(Settings(api_keys="hush"))  # type: ignore[arg-type]


def test_an_invalid_hash_is_refused_at_the_start() -> None:
    with pytest.raises(InvalidInput, match="64 hexadecimal"):
        ApiKeys([SecretStr("sha256:abc")])


@given(keys=st.lists(st.text(min_size=1).map(str.strip).filter(bool), min_size=1, max_size=4), wrong=st.text())
def test_exactly_the_configured_keys_are_accepted(keys: list[str], wrong: str) -> None:
    keys = [key for key in keys if not key.startswith("sha256:")] or ["k"]
    api_keys = ApiKeys(map(SecretStr, keys))
    assert len({api_keys.caller(key) for key in keys}) == len(set(keys))
    if wrong not in keys:
        with pytest.raises(InvalidKey):
            api_keys.caller(wrong)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@given(
    per_minute=st.floats(1, 1000),
    steps=st.lists(st.tuples(st.floats(0, 30), st.integers(1, 50)), min_size=1, max_size=60),
)
def test_no_caller_exceeds_one_bucket_and_the_rate(per_minute: float, steps: list[tuple[float, int]]) -> None:
    clock = Clock()
    limit = RateLimit(per_minute, "requests", clock)
    n_taken, largest = 0, 0
    for wait_s, n in steps:
        clock.now += wait_s
        try:
            limit.take("me", n)
            n_taken, largest = n_taken + n, max(largest, n)
        except RateLimited as refused:
            clock.now += refused.retry_after_s + 1e-6  # after the time that the error names, it is accepted
            limit.take("me", n)
            n_taken, largest = n_taken + n, max(largest, n)
    assert n_taken <= per_minute * (1 + clock.now / 60) + largest + 1e-6


def test_callers_have_separate_limits() -> None:
    limit = RateLimit(1, "requests", Clock())
    limit.take("a")
    with pytest.raises(RateLimited):
        limit.take("a")
    limit.take("b")


def test_the_number_of_callers_in_memory_is_limited() -> None:
    limit = RateLimit(1, "requests", Clock())
    for i in range(MAX_CALLERS + 100):
        limit.take(str(i))
    assert len(limit._buckets) == MAX_CALLERS


@pytest.mark.server
def test_over_the_request_limit_a_caller_gets_429_with_retry_after(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, rate_requests=2, api_keys="a,b") as server:
        as_a, as_b = ({"authorization": f"Bearer {key}"} for key in "ab")
        answers = [server.post("/tts", {"text": "deep"}, headers=as_a) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert_error(answers[2], 429, "rate_limited")
        assert 1 <= int(answers[2].headers["retry-after"]) <= 45
        assert server.post("/tts", {"text": "deep"}, headers=as_b).status_code == 200
        assert server.get("/v1/models").status_code == 200


@pytest.mark.server
def test_characters_are_limited_too(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, rate_characters=20) as server:
        assert server.speak(input="deep water runs").status_code == 200
        assert_error(server.speak(input="deep water runs"), 429, "rate_limited")


@pytest.mark.server
def test_only_a_configured_origin_may_call(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, cors_origins="https://good.example", api_keys="k") as server:
        preflight = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
        for origin, allowed in (("https://good.example", True), ("https://evil.example", False)):
            response = server.clients[0].options("/v1/audio/speech", headers={"origin": origin, **preflight})
            assert (response.headers.get("access-control-allow-origin") == origin) == allowed
            response = server.post("/tts", {"text": "deep"}, headers={"origin": origin, "authorization": "Bearer k"})
            assert ("access-control-allow-origin" in response.headers) == allowed


@pytest.mark.server
@pytest.mark.parametrize("origin", ["chrome-extension://abcdefghijklmnop", "null", "http://localhost:3000"])
def test_extensions_and_local_files_may_be_listed(fake_engine: FakeEngine, origin: str) -> None:
    asked = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    with serving(fake_engine, cors_origins=origin) as server:
        preflight = server.clients[0].request("OPTIONS", "/dev/captioned_speech", headers={"origin": origin, **asked})
        assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, origin)
        response = server.post("/dev/captioned_speech", {"input": "deep"}, headers={"origin": origin})
        assert (response.status_code, response.headers["access-control-allow-origin"]) == (200, origin)
        refused = server.post("/dev/captioned_speech", {"input": "deep"}, headers={"origin": "https://other.example"})
        assert_error(refused, 403, "origin_not_allowed")

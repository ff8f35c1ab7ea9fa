"""Routes for models, voices, probes and metrics."""

import pytest

from tests.fakes import FakeEngine
from tests.server.harness import LONG, RunningServer, assert_error, serving
from tutti.voice_traits import TRAITS
from tutti.voices import NAMES

pytestmark = pytest.mark.server


def test_models_are_listed_and_found_by_name(server: RunningServer) -> None:
    listed = server.get("/v1/models").json()
    assert listed["object"] == "list"
    names = [model["id"] for model in listed["data"]]
    assert names == ["kokoro", "tts-1", "tts-1-hd", "gpt-4o-mini-tts", "kokoro-int8"]
    assert all(model["object"] == "model" for model in listed["data"])
    for name in names:
        assert server.get(f"/v1/models/{name}").json()["id"] == name
    assert_error(server.get("/v1/models/whisper-1"), 404, "model_not_found", "model")
    assert [model["id"] for model in server.get("/v1/audio/models").json()["models"]] == names


def test_voices_are_listed_with_language_gender_and_grade(server: RunningServer) -> None:
    answer = server.get("/v1/audio/voices").json()
    assert answer["default_voice"] == "af_heart"
    assert [voice["id"] for voice in answer["voices"]] == list(NAMES)
    assert answer["voices"][0] == {
        "id": "af_heart",
        "name": "af_heart",
        "label": "Heart (American English, female)",
        "language": "en-us",
        "gender": "female",
        "grade": "A",
        "description": TRAITS["af_heart"],
        "needs": None,
    }
    assert server.get("/v1/audio/voices?legacy=true").json()["voices"] == list(NAMES)


def test_small_routes_answer(server: RunningServer) -> None:
    assert server.get("/v1/test").json() == {"status": "ok"}
    assert server.get("/v1/").status_code == 200
    assert server.get("/v1/").json()
    assert_error(server.get("/v1/readyz"), 404, "not_found")  # a 200 would make clients take this for another server


@pytest.mark.parametrize("path", ["/health", "/healthz", "/readyz", "/version"])
def test_probes_answer_in_json(server: RunningServer, path: str) -> None:
    response = server.get(path)
    assert response.status_code == 200
    assert isinstance(response.json(), dict)


def test_metrics_are_in_the_format_of_prometheus(server: RunningServer) -> None:
    response = server.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=")


def test_answers_are_counted_by_known_routes_and_methods_only(fake_engine: FakeEngine) -> None:
    with serving(fake_engine) as server:
        server.speak()
        server.speak(voice="nobody")
        server.get("/made/up")
        server.clients[0].request("INVENTED", "/tts")
        fake_engine.hold_from = 1
        with server.client().stream("POST", "/tts/stream", json={"text": LONG}) as response:
            pieces = response.iter_raw()
            next(pieces)
            del pieces
        assert fake_engine.streams_cancelled.acquire(timeout=60)
        while 'outcome="left"' not in (metrics := server.get("/metrics").text):
            pass
    for labels in (
        'method="POST",outcome="done",route="/v1/audio/speech",status="200"',
        'method="POST",outcome="done",route="/v1/audio/speech",status="400"',
        'method="POST",outcome="left",route="/tts/stream",status="200"',
        'method="GET",outcome="done",route="-",status="404"',
    ):
        assert f"tutti_http_answers_total{{{labels}}} 1.0" in metrics
    assert "made" not in metrics
    assert "INVENTED" not in metrics


def test_the_openapi_document_has_every_route_with_its_errors_and_no_422(server: RunningServer) -> None:
    document = server.get("/openapi.json").json()
    assert set(document["paths"]) >= {
        *("/v1/audio/speech", "/v1/models", "/v1/models/{name}", "/v1/audio/models", "/v1/audio/voices"),
        *("/v1/test", "/v1/", "/tts", "/tts/batch", "/tts/stream", "/health/batching", "/health/streaming"),
        *("/health/workers", "/test/batching", "/dev/captioned_speech", "/dev/phonemize"),
        *(
            "/dev/generate_from_phonemes",
            "/dev/dialogue",
            "/v1/audio/dialogue",
            "/dev/ssml",
            "/v1/audio/voices/combine",
            "/health",
            "/healthz",
            "/readyz",
        ),
        *("/version", "/metrics"),
    }
    captions = document["paths"]["/v1/jobs/{id}/captions"]["get"]["responses"]["200"]
    assert set(captions["content"]) == {"application/json", "text/plain", "text/vtt"}  # json, srt, vtt
    assert "400" in document["paths"]["/v1/audio/voices"]["get"]["responses"]
    for path in document["paths"].values():
        for method, operation in path.items():
            assert "422" not in operation["responses"]
            assert method == "get" or {"400", "401", "413", "429", "503"} <= set(operation["responses"])
    assert server.get("/docs").status_code == 200


def test_listings_and_probes_need_no_key(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, api_keys="secret") as server:
        for path in ("/v1/models", "/v1/audio/voices", "/v1/audio/models", "/v1/test", "/v1/", "/health", "/readyz"):
            assert server.get(path).status_code == 200
        assert server.get("/health/workers").status_code == 200
        assert_error(server.speak(), 401, "invalid_api_key")

"""What clients ask before they speak."""

import pytest

from tests.server.harness import LONG, House, Stage, serving, shaped
from tutti.voices import NAMES


def test_models_are_listed_and_found_by_name(house: House) -> None:
    listed = house.get("/v1/models").json()
    assert listed["object"] == "list"
    names = [model["id"] for model in listed["data"]]
    assert names == ["kokoro", "tts-1", "tts-1-hd", "gpt-4o-mini-tts", "kokoro-int8"]
    assert all(model["object"] == "model" for model in listed["data"])
    for name in names:
        assert house.get(f"/v1/models/{name}").json()["id"] == name
    shaped(house.get("/v1/models/whisper-1"), 404, "model_not_found", "model")
    assert [model["id"] for model in house.get("/v1/audio/models").json()["models"]] == names


def test_voices_are_listed_with_what_is_known_of_them(house: House) -> None:
    answer = house.get("/v1/audio/voices").json()
    assert answer["default_voice"] == "af_heart"
    assert [voice["id"] for voice in answer["voices"]] == list(NAMES)
    assert answer["voices"][0] == {
        "id": "af_heart",
        "name": "Heart (American English, female)",
        "language": "en-us",
        "gender": "female",
        "grade": "A",
    }
    assert house.get("/v1/audio/voices?legacy=true").json()["voices"] == list(NAMES)


def test_small_questions_have_small_answers(house: House) -> None:
    assert house.get("/v1/test").json() == {"status": "ok"}
    assert house.get("/v1/").status_code == 200
    assert house.get("/v1/").json()
    shaped(house.get("/v1/readyz"), 404, "not_found")  # a 200 would make a client take us for another server


@pytest.mark.parametrize("path", ["/health", "/healthz", "/readyz", "/version"])
def test_probes_answer_in_json(house: House, path: str) -> None:
    response = house.get(path)
    assert response.status_code == 200
    assert isinstance(response.json(), dict)


def test_metrics_are_there_for_prometheus(house: House) -> None:
    response = house.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=")


def test_answers_are_counted_by_route_and_end_and_never_by_what_a_client_made_up(stage: Stage) -> None:
    with serving(stage) as house:
        house.speak()
        house.speak(voice="nobody")
        house.get("/made/up")
        house.clients[0].request("INVENTED", "/tts")
        stage.hold_from = 1
        with house.client().stream("POST", "/tts/stream", json={"text": LONG}) as response:
            pieces = response.iter_raw()
            next(pieces)
            del pieces
        assert stage.closed.acquire(timeout=60)
        while 'outcome="left"' not in (counted := house.get("/metrics").text):
            pass
    for labels in (
        'method="POST",outcome="done",route="/v1/audio/speech",status="200"',
        'method="POST",outcome="done",route="/v1/audio/speech",status="400"',
        'method="POST",outcome="left",route="/tts/stream",status="200"',
        'method="GET",outcome="done",route="-",status="404"',
    ):
        assert f"tutti_http_answers_total{{{labels}}} 1.0" in counted
    assert "made" not in counted
    assert "INVENTED" not in counted


def test_the_document_shows_every_route_with_its_errors_and_no_422(house: House) -> None:
    document = house.get("/openapi.json").json()
    assert set(document["paths"]) >= {
        *("/v1/audio/speech", "/v1/models", "/v1/models/{name}", "/v1/audio/models", "/v1/audio/voices"),
        *("/v1/test", "/v1/", "/tts", "/tts/batch", "/tts/stream", "/health/batching", "/health/streaming"),
        *("/health/workers", "/test/batching", "/dev/captioned_speech", "/dev/phonemize"),
        *("/dev/generate_from_phonemes", "/v1/audio/voices/combine", "/health", "/healthz", "/readyz"),
        *("/version", "/metrics"),
    }
    for path in document["paths"].values():
        for method, operation in path.items():
            assert "422" not in operation["responses"]
            assert method == "get" or {"400", "401", "413", "429", "503"} <= set(operation["responses"])
    assert house.get("/docs").status_code == 200


def test_listings_and_probes_stay_open_where_keys_are_set(stage: Stage) -> None:
    with serving(stage, api_keys="secret") as house:
        for path in ("/v1/models", "/v1/audio/voices", "/v1/audio/models", "/v1/test", "/v1/", "/health", "/readyz"):
            assert house.get(path).status_code == 200
        assert house.get("/health/workers").status_code == 200
        shaped(house.speak(), 401, "invalid_api_key")

"""Mistakes in a call are errors that name what was meant, before anything is sent."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kokoro_handler import OptimizedKokoroHandler
from tests.server.harness import RunningServer
from tutti.client import AsyncClient, Client
from tutti.errors import InvalidInput

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(NOWHERE, prewarm=False, retries=0) as client:
        yield client


@pytest.mark.parametrize(
    "call",
    [
        lambda client, **wrong: client.speak("x", **wrong),
        lambda client, **wrong: client.stream("x", **wrong),
        lambda client, **wrong: client.speak_many(["x"], **wrong),
        lambda client, **wrong: client.speak_async("x", **wrong),
        lambda client, **wrong: client.prefetch(["x"], **wrong),
        lambda client, **wrong: client.live(**wrong),
    ],
    ids=["speak", "stream", "speak_many", "speak_async", "prefetch", "live"],
)
def test_an_option_that_does_not_exist_is_a_type_error_of_every_call(client: Client, call: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="'voise'; did you mean voice"):
        call(client, voise="af_sky")
    with pytest.raises(TypeError, match=r"'quality'$"):
        call(client, quality="high")


@pytest.mark.parametrize("name", ["speak", "stream", "speak_many", "speak_async", "prefetch", "live"])
def test_so_it_is_in_the_asynchronous_client(name: str) -> None:
    arguments = {"speak_many": (["x"],), "prefetch": (["x"],), "speak_async": ("x", print), "live": ()}

    async def call() -> None:
        async with AsyncClient(NOWHERE, prewarm=False, retries=0) as client:
            result = getattr(client, name)(*arguments.get(name, ("x",)), voise="af_sky")
            if asyncio.iscoroutine(result):
                await result

    with pytest.raises(TypeError, match="'voise'; did you mean voice"):
        asyncio.run(call())


def test_the_options_of_a_call_itself_are_suggested_too(client: Client) -> None:
    with pytest.raises(TypeError, match="did you mean deadline_s"):
        client.speak("x", deadline=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("create", [Client, AsyncClient, OptimizedKokoroHandler])
def test_an_option_of_the_client_that_does_not_exist_is_a_type_error(create: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="'api_kye'; did you mean api_key"):
        create(NOWHERE, api_kye="x")


@pytest.mark.parametrize("name", ["synthesize_sync", "synthesize_async", "synthesize_batch"])
def test_so_it_is_in_the_handler_of_earlier_code(name: str) -> None:
    with (
        OptimizedKokoroHandler(NOWHERE, pre_warm_models=False, retries=0) as handler,
        pytest.raises(TypeError, match="'voise'; did you mean voice"),
    ):
        getattr(handler, name)(["x"] if name == "synthesize_batch" else "x", voise="af_sky")


@pytest.mark.parametrize(("text", "shown"), [(None, "None"), (b"x", "bytes"), (["x"], "list")])
def test_a_text_that_is_no_string_is_named(client: Client, text: Any, shown: str) -> None:
    for call in (client.speak, client.stream):
        with pytest.raises(InvalidInput, match=f"the text must be a string, not {shown}"):
            call(text)
    (error,) = client.speak_many([text])
    assert isinstance(error, InvalidInput)
    with pytest.raises(InvalidInput, match="the text is empty"):
        client.speak(" ")


@pytest.mark.server
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"speed": 9}, "speed must be at most 4, not 9"),
        ({"speed": 0.1}, "speed must be at least 0.25, not 0.1"),
        ({"volume": -1}, "volume_multiplier must be at least 0, not -1"),
    ],
)
def test_a_number_out_of_range_is_named_with_its_limit(
    server: RunningServer, options: dict[str, Any], sentence: str
) -> None:
    with Client(server.url, prewarm=False) as client, pytest.raises(InvalidInput) as raised:
        client.speak("deep water", **options)
    assert raised.value.message == sentence

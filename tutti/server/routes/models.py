"""What clients ask before they speak: models, voices, is this the right server. Open, also where keys are set."""

from typing import Any

from fastapi import APIRouter

from tutti.server.aliases import MODELS, checkpoint
from tutti.server.openapi import errors
from tutti.server.service import Service
from tutti.text.language import language
from tutti.voices import GRADES, NAMES, gender

CREATED = 1_735_689_600  # 2025-01-01, when Kokoro 1.0 was new


def discovery_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["discovery"])
    listed = (*MODELS, *(name for name in service.engine.checkpoints if name not in MODELS))

    @routes.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [model(name) for name in listed]}

    @routes.get("/v1/models/{name:path}", responses=errors(404))
    async def one_model(name: str) -> dict[str, Any]:
        checkpoint(name, service.engine.checkpoints)
        return model(name)

    @routes.get("/v1/audio/models")
    async def audio_models() -> dict[str, Any]:
        return {"models": [{"id": name, "name": name} for name in listed]}

    @routes.get("/v1/audio/voices")
    async def voices(legacy: bool = False) -> dict[str, Any]:
        """Every voice; `legacy=true` for the bare names."""
        rows = list(NAMES) if legacy else [voice(name) for name in NAMES]
        return {"voices": rows, "default_voice": service.cast.voice}

    @routes.get("/v1/test")
    async def test() -> dict[str, str]:
        return {"status": "ok"}

    @routes.get("/v1/")
    async def root() -> dict[str, str]:
        return {"object": "tutti"}

    return routes


def model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "tutti"}


def voice(name: str) -> dict[str, str]:
    spoken = language(name[0])
    shown = f"{name[3:].title()} ({spoken.name}, {gender(name)})"
    return {"id": name, "name": shown, "language": spoken.code, "gender": gender(name), "grade": GRADES[name]}

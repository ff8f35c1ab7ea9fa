"""POST /v1/stats/trial: another policy for as long as somebody holds the line."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel

from tutti.errors import TuttiError
from tutti.server.middleware.ingress import check_origin
from tutti.server.routes.stats import Events, event
from tutti.server.service import Service

MAX_S = 120.0
TOLD_EVERY_S = 1.0


class TrialRefused(TuttiError):
    status, code = 409, "trial_refused"


class TrialBody(BaseModel):
    policy: str


@dataclass(frozen=True, slots=True)
class Held:
    """A trial under way."""

    policy: str
    caller: str
    until_s: float


class Trials:
    """At most one at a time; the server's own policy is back when it ends, for whatever reason."""

    def __init__(self, service: Service, clock: Callable[[], float] = time.monotonic) -> None:
        self._service = service
        self._clock = clock
        self._held: Held | None = None

    def told(self) -> dict[str, Any] | None:
        """The one under way, in words."""
        held = self._held
        return None if held is None else {"policy": held.policy, "left_s": self._left_s(held)}

    async def hold(self, policy: str, caller: str) -> AsyncGenerator[bytes]:
        podium = self._service.engine.monitor
        if self._held is not None:
            raise TrialRefused("another trial is under way; one at a time")
        if podium.others(caller):
            raise TrialRefused("others are being served; a trial is only for who is alone here")
        own = podium.policy
        podium.use(policy)
        self._held = held = Held(policy, caller, self._clock() + MAX_S)
        try:
            yield event({"type": "trial", "policy": policy, "instead_of": own, "max_s": MAX_S})
            while (reason := self._over(held)) is None:
                await asyncio.sleep(min(TOLD_EVERY_S, self._left_s(held)))
                yield event({"type": "held", "policy": policy, "left_s": self._left_s(held)})
        finally:
            podium.use(own)
            self._held = None
        yield event({"type": "end", "reason": reason})

    def _over(self, held: Held) -> str | None:
        """Why it must end, if it must."""
        if self._service.lifecycle.draining:
            return "draining"
        if self._service.engine.monitor.others(held.caller):
            return "others"
        return "over" if self._clock() >= held.until_s else None

    def _left_s(self, held: Held) -> float:
        return round(max(0.0, held.until_s - self._clock()), 1)


def trial_routes(service: Service, trials: Trials) -> APIRouter:
    routes = APIRouter(tags=["stats"])

    # Its answer has no end while it is held, which an OpenAPI document cannot say; docs/stats.md does.
    @routes.post("/v1/stats/trial", response_class=Response, include_in_schema=False)
    async def trial(request: Request, body: TrialBody) -> Response:
        """Another policy while this connection stays open."""
        check_origin(request.headers, service.settings.cors_origins)
        return Events(trials.hold(body.policy, request.state.caller))

    return routes

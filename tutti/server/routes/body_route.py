"""A route for a body of JSON, on the way that a request for speech takes."""

import inspect
import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class BodyRoute(APIRoute):
    """Calls an endpoint with the arguments `request` and `body` at once if the body is as it should be.

    All others go the way of FastAPI, which looks for arguments in every place of a request.
    """

    def get_route_handler(self) -> Handler:
        usual = super().get_route_handler()
        endpoint, arguments = self.endpoint, inspect.signature(self.endpoint, eval_str=True).parameters
        if list(arguments) != ["request", "body"]:
            return usual
        model: type[BaseModel] = arguments["body"].annotation

        async def handle(request: Request) -> Response:
            if request.headers.get("content-type") != "application/json":
                return await usual(request)
            try:
                body = model.model_validate(json.loads(await request.body()))
            except (ValueError, ValidationError, RecursionError):
                return await usual(request)  # it says what is wrong
            response: Response = await endpoint(request, body)
            return response

        return handle

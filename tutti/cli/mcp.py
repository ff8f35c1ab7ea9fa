"""`tutti mcp`: the tools of an agent, for programs that speak the Model Context Protocol."""

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from tutti import __version__
from tutti.client.commands import URL, ApiKey, Voice
from tutti.errors import MissingExtra, TuttiError, install_hint

INSTRUCTIONS = "Give the user speech: say short answers with speak, read files aloud with read_document, end with stop."
HOST = "127.0.0.1"  # whoever reaches the port can play sound and read documents


def mcp(
    url: Annotated[str, typer.Option(envvar="TUTTI_URL", help="The server that speaks.")] = URL,
    folder: Annotated[
        Path, typer.Option(help="The agent may read documents and write files here, and nowhere else.")
    ] = Path("~"),
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve over HTTP at this port, instead of over stdio.")
    ] = None,
    voice: Voice = None,
    api_key: ApiKey = None,
) -> None:
    """Give agents a voice over MCP: [bold]claude mcp add tutti -- tutti mcp[/]

    The tools speak, list voices, read documents and stop; they need a running [bold]tutti serve[/].
    """
    try:
        from mcp.server import MCPServer
    except ImportError:
        raise MissingExtra(f"for agents over MCP: {install_hint('mcp')}") from None

    from tutti.cli.agent_tools import AgentTools
    from tutti.client import Client

    with Client(url, api_key=api_key, voice=voice, prewarm=False) as client:
        tools = AgentTools(client, folder)
        server = MCPServer("tutti", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")
        for tool in (tools.speak, tools.list_voices, tools.read_document, tools.stop):
            server.add_tool(_with_errors(tool))
        try:
            if port is None:
                server.run("stdio")
            else:
                print(f"tutti mcp: http://{HOST}:{port}/mcp", file=sys.stderr)
                server.run("streamable-http", host=HOST, port=port)
        finally:
            tools.stop()


def _with_errors(tool: Callable[..., Any]) -> Callable[..., Any]:
    """The same tool, whose errors the agent can read."""
    from mcp.server.mcpserver.exceptions import ToolError

    @wraps(tool)
    def run(*args: Any, **options: Any) -> Any:
        try:
            return tool(*args, **options)
        except TuttiError as error:
            raise ToolError(error.message) from None

    return run

"""The `tutti-client` command: `say`, `bench` and `top`, for installations of the client alone."""

import sys

from tutti.errors import TuttiError, install_hint


def main() -> None:
    """Run a command; an error is one line on stderr and an exit code."""
    try:
        import typer

        from tutti.client.commands import CommandGroup, register
    except ImportError as missing:
        print(f"tutti: {missing.name} is not installed: {install_hint('cli')}", file=sys.stderr)
        raise SystemExit(3) from None
    app = typer.Typer(
        cls=CommandGroup,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        help="The client of tutti.",
    )
    register(app)
    try:
        app()
    except TuttiError as error:
        print(f"tutti: {error.message}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None


if __name__ == "__main__":
    main()

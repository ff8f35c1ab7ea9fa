"""`python -m tutti` is `tutti`."""

from tutti.cli.main import main

main()

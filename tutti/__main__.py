"""`python -m tutti` is `tutti`."""

from tutti.cli import main

main()

"""Write packaging/constraints.txt: the versions of all packages that the tests run with, for installing a release.

python -m scripts.constraints      after newer packages were installed; commit the file if `make test` passes with it
"""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FILE = Path(__file__).parent.parent / "packaging" / "constraints.txt"
OURS = "tutti-tts"
HEAD = """\
# The versions that the tests run with: pip install -c packaging/constraints.txt …
# Written by `python -m scripts.constraints`. Not here: what only the extras play, ray, russian, verify, web and bench
# need, which the tests do without, and the CUDA libraries, whose versions each release of torch names itself.
"""


def installed() -> dict[str, str]:
    """The packages that ours needs here for its tests, with what they need in turn, and their versions."""
    versions: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    to_do = [Requirement(f"{OURS}[dev]")]
    while to_do:
        wanted = to_do.pop()
        name = canonicalize_name(wanted.name)
        try:
            package = distribution(name)
        except PackageNotFoundError:  # what an extra asks for that a package does not have
            continue
        versions[name] = package.version.partition("+")[0]  # torch 2.13.0+cpu is torch 2.13.0, built for no GPU
        for extra in {"", *wanted.extras} - {extra for known, extra in seen if known == name}:
            seen.add((name, extra))
            needs = [Requirement(line) for line in package.requires or ()]
            to_do += [need for need in needs if need.marker is None or need.marker.evaluate({"extra": extra})]
    del versions[OURS]
    return versions


def constraints() -> dict[str, str]:
    """The versions in the file."""
    lines = [Requirement(line) for line in FILE.read_text().splitlines() if not line.startswith("#")]
    return {canonicalize_name(line.name): str(line.specifier).removeprefix("==") for line in lines}


def main() -> None:
    lines = [f"{name}=={version}\n" for name, version in sorted(installed().items())]
    FILE.write_text(HEAD + "".join(lines))
    print(f"{FILE.name}: {len(lines)} packages")


if __name__ == "__main__":
    main()

"""Build the wheel tutti-tts-model: the int8 model, the voices and the lexicons, from TUTTI_HOME, each byte checked.

    python -m scripts.model_wheel [--dist dist]

Missing files are downloaded. Nothing of it belongs into the repository.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tutti.model_package import NAME
from tutti.settings import Settings
from tutti.weights import Store, required_files, show_progress, sources

ROOT = Path(__file__).parent.parent
MAX_MB = 100  # of a file on the public index


def build(home: Path, dist: Path) -> Path:
    """The wheel, in this folder."""
    store, files = Store(home), required_files("int8")
    with show_progress() as progress:
        store.ensure(files, sources=sources(), progress=progress)
        store.verify(files, progress)
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        shutil.copytree(ROOT / "packaging/model", project)
        shutil.copy(ROOT / "LICENSE", project)
        for file in files:
            target = project / NAME / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(store.path(file), target)
        (project / NAME / "__init__.py").write_text('"""Files that tutti reads; no code."""\n')
        command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(dist), str(project)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = dist.glob("tutti_tts_model-*.whl")
    return wheel


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the wheel with the model inside.")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    wheel = build(Settings().home, parser.parse_args().dist)
    n_mb = wheel.stat().st_size / 1e6
    print(f"{wheel}: {n_mb:.1f} MB")
    if n_mb > MAX_MB:
        raise SystemExit(f"larger than {MAX_MB} MB, the limit of the public index")


if __name__ == "__main__":
    main()

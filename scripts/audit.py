"""List the installed packages with their licences, write a bill of materials, and look for known vulnerabilities.

python -m scripts.audit            the list, build/sbom.json (CycloneDX 1.5), and pip-audit if it is installed
"""

import json
import subprocess
import sys
from importlib.metadata import Distribution, distributions
from importlib.util import find_spec
from pathlib import Path

SBOM = Path("build/sbom.json")


def licence(package: Distribution) -> str:
    """The licence as the package declares it: its expression, its classifier, or the first line of its field."""
    metadata = package.metadata
    classifiers = [line.rpartition(" :: ")[2] for line in metadata.get_all("Classifier", []) if "License ::" in line]
    declared = metadata.get("License-Expression") or ", ".join(classifiers) or metadata.get("License") or "?"
    return str(declared).strip().splitlines()[0][:60]


def component(package: Distribution) -> dict[str, object]:
    name, version = package.metadata["Name"], package.version
    return {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name.lower().replace('_', '-')}@{version}",
        "licenses": [{"license": {"name": licence(package)}}],
    }


def main() -> int:
    packages = sorted(distributions(), key=lambda package: package.metadata["Name"].lower())
    for package in packages:
        print(f"{package.metadata['Name']:32} {package.version:16} {licence(package)}")
    SBOM.parent.mkdir(exist_ok=True)
    document = {"bomFormat": "CycloneDX", "specVersion": "1.5", "components": [component(each) for each in packages]}
    SBOM.write_text(json.dumps(document, indent=1) + "\n")
    print(f"\n{len(packages)} packages, written to {SBOM}")
    if find_spec("pip_audit") is None:
        print("vulnerabilities were not looked up: pip install pip-audit")
        return 0
    found = subprocess.run([sys.executable, "-m", "pip_audit", "--progress-spinner", "off"], check=False)
    return found.returncode


if __name__ == "__main__":
    sys.exit(main())

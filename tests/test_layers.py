"""The layers of docs/architecture.md: a module imports only what lies below it, and a heavy library in one place."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# From the bottom to the top. A part may import the parts of lower rows, and in the first row its neighbours, too.
LAYERS = (
    (
        *("additions", "errors", "files", "model_package", "percentile", "decaying_sum", "process", "tasks"),
        *("settings", "speech", "metrics", "trace", "cloud_voices", "torch_file", "voice_file", "voice_traits"),
        "likeness",
    ),
    ("admission", "text", "audio", "model", "weights"),
    ("own_voices", "lexicons"),
    ("voices",),
    ("batching", "captions", "verify"),
    ("worker",),
    ("engine",),
    ("audiobook", "bulk", "plan"),
    ("server", "client"),
    ("cli", "__main__"),
)
# Module or package: the only places that import it.
ONLY_IN = {
    "torch": ("tutti.model", "tutti.text.g2p.russian"),  # the second: silero-stress changes its threads
    "opentelemetry": ("tutti.server.spans",),
    "triton": ("tutti.model.torch",),
    "onnxruntime": ("tutti.model", "tutti.verify"),
    **dict.fromkeys(("av", "soxr"), ("tutti.audio",)),
    **dict.fromkeys(("espeakng_loader", "jieba", "pypinyin", "fugashi", "jaconv", "silero_stress"), ("tutti.text",)),
    "pyarrow": ("tutti.bulk",),
    "mcp": ("tutti.cli",),
    **dict.fromkeys(("fastapi", "starlette"), ("tutti.server",)),
    "tutti_ray": ("tutti.cli",),
    "tutti.batching": ("tutti.batching", "tutti.engine", "tutti.plan"),
    "tutti.server.routes": (
        *("tutti.server.routes", "tutti.server.app", "tutti.server.front.child_main"),
        "tutti.cli.main",  # `tutti g2p`: one route
    ),
}
# Module or package: what it must not import.
NEVER_IN = {
    "tutti": ("onnx", "huggingface_hub"),  # of the tests, not of an installation
    # The scheduler is pure: it is handed the time, it starts nothing, and it knows jobs, not speech.
    "tutti.batching": (
        *("asyncio", "concurrent", "multiprocessing", "random", "socket", "subprocess", "threading", "time"),
        *("tutti.engine", "tutti.model", "tutti.text", "tutti.worker"),
    ),
    "tutti.admission": (
        *("threading",),
        *(f"tutti.{part}" for row in LAYERS for part in row if part not in ("admission", "errors", "decaying_sum")),
    ),
    # Only the loop budget knows the event loop.
    **dict.fromkeys(
        [
            f"tutti.admission.{part}"
            for part in ("control", "fair_share", "feasibility", "refusals", "start_delay", "ticket")
        ],
        ("asyncio", "time"),
    ),
    "tutti.plan.simulation": ("asyncio", "threading", "time", "tutti.engine", "tutti.worker"),
    "tutti.server.middleware": ("tutti.server.routes",),
    "tutti.process": tuple(f"tutti.{part}" for row in LAYERS for part in row if part not in ("process", "errors")),
}
CLIENT_NEEDS = ("tutti.client", "tutti.errors", "tutti.files", "tutti.percentile")
# Imported inside of functions only, since a server without a GPU does not install them.
LAZY = ("torch", "triton", "tutti.model.torch")


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in sorted((ROOT / "tutti").rglob("*.py"))}


def is_in(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def imported(node: ast.AST) -> Iterator[str]:
    """The modules that a statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.module, "imports are absolute"
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            yield name if name in MODULES else node.module


def at_start(node: ast.AST) -> Iterator[ast.AST]:
    """The statements that run when a module is imported: none in functions, none for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from at_start(child)


@cache
def imports(module: str, *, lazy: bool = True) -> set[str]:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    return {name for node in (ast.walk(tree) if lazy else at_start(tree)) for name in imported(node)}


def layer(module: str) -> int:
    part = module.split(".")[1]
    return next(n for n, parts in enumerate(LAYERS) if part in parts)


def test_every_part_has_its_layer() -> None:
    parts = {module.split(".")[1] for module in MODULES if module != "tutti"}
    assert parts == {part for parts in LAYERS for part in parts}


@pytest.mark.parametrize("part", [part for parts in LAYERS for part in parts])
def test_a_part_imports_only_what_lies_below_it(part: str) -> None:
    here = f"tutti.{part}"
    for module in MODULES:
        for name in imports(module) if is_in(module, here) else ():
            if is_in(name, "tutti") and name != "tutti" and not is_in(name, here) and part != "__main__":
                below = layer(name) < layer(here) or layer(name) == layer(here) == 0
                assert below, f"{module}, layer {layer(module)}, imports {name}, layer {layer(name)}"


@pytest.mark.parametrize("library", ONLY_IN)
def test_each_is_imported_only_where_it_belongs(library: str) -> None:
    users = {module for module in MODULES if any(is_in(name, library) for name in imports(module))}
    assert users, f"{library} is not used any more"
    assert not {module for module in users if not is_in(module, *ONLY_IN[library])}


@pytest.mark.parametrize("package", NEVER_IN)
def test_a_package_keeps_away_from_what_it_must_not_know(package: str) -> None:
    modules = [module for module in MODULES if is_in(module, package)]
    assert modules
    uses = {(module, name) for module in modules for name in imports(module) if is_in(name, *NEVER_IN[package])}
    assert not uses


def test_the_client_needs_little_of_the_rest() -> None:
    for module in MODULES:
        for name in imports(module) if is_in(module, "tutti.client") else ():
            assert not is_in(name, "tutti") or is_in(name, *CLIENT_NEEDS), f"{module} imports {name}"


def test_no_ability_of_a_model_is_looked_up_by_name() -> None:
    """What a model may lack has a default in `tutti.model.protocol`."""
    lookups = {
        f"{module}: {ast.unparse(node)}"
        for module in MODULES
        for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr")
        if "model" in ast.unparse(node.args[0]).lower()
    }
    assert not lookups


def test_torch_is_imported_only_when_it_is_needed() -> None:
    for module in MODULES:
        if not is_in(module, "tutti.model.torch"):
            assert not {name for name in imports(module, lazy=False) if is_in(name, *LAZY)}, module


def test_ray_is_not_imported_at_all() -> None:
    """What runs on it is a package of its own: packaging/ray."""
    assert not {module for module in MODULES if any(is_in(name, "ray") for name in imports(module))}


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {module: imports(module, lazy=False) & MODULES.keys() for module in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("a circle of imports: " + " <- ".join(error.args[1]))


def test_no_object_changes_its_class() -> None:
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            targets = node.targets if isinstance(node, ast.Assign) else []
            assert not [each for each in targets if isinstance(each, ast.Attribute) and each.attr == "__class__"], (
                module
            )

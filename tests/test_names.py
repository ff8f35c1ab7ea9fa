"""The vocabulary of docs/architecture.md: one word for one thing, in functions and files of a readable size."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "tutti"

MAX_LINES = 400
MAX_PARAMETERS = 8
# Words of an identifier that the glossary retired; those that have another, common meaning (part, line) are not listed.
RETIRED_WORDS = {
    *("clerk", "desk", "face", "hasten", "lately", "lot", "patience", "podium", "shelf", "tape", "voicing"),
    *("wish", "wishe", "wordlist"),
}
RETIRED_CLASSES = {
    *("Ask", "Callers", "Door", "Draft", "Extent", "Lot", "Need", "Order", "Part", "Said", "Shape"),
    *("Spoken", "Take", "Waiting"),
}
ALLOWED = {
    ("client/request.py", "Wishes"): "the public name of SpeechOptions in earlier versions",
}
DEFINED_TWICE = {
    "Stream": "one that is spoken; and the public one of the client, which imports nothing of the engine",
}
PARTICIPLES = {"told", "made", "found", "kept", "heard"}
# In these packages no local, attribute or parameter is named by one of these either, nor by a word that means something
# else there: in a text, a span is a part of a row's audio; a lane is a core in the cost model.
READ_AGAIN = ("engine/", "worker/", "process/", "text/", "audio/")
MORE_PARTICIPLES = {
    *PARTICIPLES,
    *("announced", "asked", "counted", "held", "known", "measured", "named", "opened", "skipped", "stored"),
}
OTHER_MEANINGS = {
    "engine/": {"alone", "lane", "own"},
    "worker/": {"alone", "lane", "rest", "own"},
    "process/": {"alone", "lane", "rest", "own"},
    "text/": {"span", "lane"},
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def files() -> dict[str, str]:
    """The text of each file, by its path."""
    return {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}


@cache
def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(text) for name, text in files().items()}


def parameters(function: Function) -> list[str]:
    args = function.args
    named = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg) if arg]
    return [name for name in named if name not in ("self", "cls")]


def may_have_many_parameters(name: str, function: Function) -> bool:
    """Whether it is a command, whose parameters are its flags, or a kernel, which gets each pointer and stride."""
    is_kernel = any("jit" in ast.unparse(decorator) for decorator in function.decorator_list)
    return name.startswith("cli/") or name == "client/commands.py" or is_kernel


def identifiers(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(asname=str(name)):
                yield name
            case ast.keyword(arg=str(name)):
                yield name


def words(identifier: str) -> set[str]:
    """The words of `snake_case`, `CONSTANT_CASE` and `CamelCase`, in lower case and in the singular."""
    return {word.lower().removesuffix("s") for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)}


def stored_names(tree: ast.AST) -> Iterator[str]:
    """Names of functions, classes, parameters, locals and attributes, where they are defined or assigned."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name


def definitions(tree: ast.Module) -> Iterator[str]:
    """Names of functions, classes and parameters, and of constants of the module; fields may be public in JSON."""
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        yield from (target.id for target in targets if isinstance(target, ast.Name))
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef):
            yield node.name
        if isinstance(node, Function):
            yield from parameters(node)


def test_a_class_name_is_defined_once() -> None:
    places = defaultdict(list)
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    assert {name for name, where in places.items() if len(where) > 1} == DEFINED_TWICE.keys()


def test_a_function_has_few_parameters() -> None:
    long = {
        f"{name}:{node.lineno} {node.name}": len(parameters(node))
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, Function)
        and len(parameters(node)) > MAX_PARAMETERS
        and not may_have_many_parameters(name, node)
    }
    assert not long, "pass a dataclass instead"


def test_a_file_is_short() -> None:
    n_lines = {name: len(text.splitlines()) for name, text in files().items()}
    assert not {name: n for name, n in n_lines.items() if n > MAX_LINES}


def test_no_retired_word_is_an_identifier() -> None:
    used = {
        (name, each)
        for name, tree in trees().items()
        for each in identifiers(tree)
        if words(each) & RETIRED_WORDS or each.strip("_") in RETIRED_CLASSES
    }
    assert used == ALLOWED.keys(), "the glossary in docs/architecture.md has the word to use"


def test_no_past_participle_is_a_name() -> None:
    names = {(name, each) for name, tree in trees().items() for each in definitions(tree)}
    assert not {(name, each) for name, each in names if each.strip("_").lower() in PARTICIPLES}


def test_no_participle_is_a_local_where_names_were_read_again() -> None:
    names = {(name, each) for name, tree in trees().items() for each in stored_names(tree)}
    assert not {
        (name, each)
        for name, each in names
        if (name.startswith(READ_AGAIN) or "/" not in name) and each.strip("_").lower() in MORE_PARTICIPLES
    }


def test_a_word_has_one_meaning_in_a_package() -> None:
    assert not {
        (name, each)
        for package, retired in OTHER_MEANINGS.items()
        for name, tree in trees().items()
        for each in stored_names(tree)
        if name.startswith(package) and words(each) & retired
    }

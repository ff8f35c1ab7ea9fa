"""Render deploy/helm without Helm, as far as its templates need.

`python -m tests.deploy.helm_chart` writes the manifests of deploy/kubernetes. Of Go's templates it knows values,
`quote`, `add`, `eq`, `toYaml … | nindent N`, `if … else … end` and `range $key, $value`.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "tutti"
# Each manifest of deploy/kubernetes, and the values it is rendered from.
MANIFESTS = {"tutti-cpu.yaml": ("values.yaml",), "tutti-gpu.yaml": ("values.yaml", "values-gpu.yaml")}


def chart_values(*names: str, **changes: Any) -> dict[str, Any]:
    """The values of these files, the later over the earlier as Helm merges them, and changes such as image__tag="1"."""
    values: dict[str, Any] = {}
    for name in names:
        values = _merge(values, yaml.safe_load((CHART / name).read_text()))
    for path, value in changes.items():
        for key in reversed(path.split("__")):
            value = {key: value}
        values = _merge(values, value)
    return values


def render_chart(values: Mapping[str, Any], release: str = "tutti") -> str:
    scope = {"Values": values, "Release": {"Name": release}}
    parts = [render(path.read_text(), scope).strip() for path in sorted((CHART / "templates").glob("*.yaml"))]
    return "\n---\n".join(part for part in parts if part) + "\n"


def render(text: str, scope: Mapping[str, Any]) -> str:
    return "".join(_render(_tokens(text), scope))


def _tokens(text: str) -> list[tuple[bool, str]]:
    """Text and actions in turns; a dash of an action removes the space beside it."""
    tokens = [(part.startswith("{{"), part) for part in re.split(r"(\{\{.*?\}\})", text, flags=re.DOTALL)]
    for n, (is_action, part) in enumerate(tokens):
        if is_action and part.startswith("{{-"):
            tokens[n - 1] = (False, tokens[n - 1][1].rstrip())
        if is_action and part.endswith("-}}"):
            tokens[n + 1] = (False, tokens[n + 1][1].lstrip())
    return [(is_action, part.strip("{}- ") if is_action else part) for is_action, part in tokens]


def _render(tokens: list[tuple[bool, str]], scope: Mapping[str, Any]) -> Iterator[str]:
    """Consume tokens up to the end of their block."""
    while tokens:
        is_action, text = tokens.pop(0)
        if not is_action:
            yield text
        elif text in ("end", "else"):
            tokens.insert(0, (True, text))
            return
        elif text.startswith("if "):
            yield from _if(tokens, scope, bool(evaluate(text.removeprefix("if "), scope)))
        elif text.startswith("range "):
            yield from _range(tokens, scope, text)
        else:
            yield str(evaluate(text, scope))


def _if(tokens: list[tuple[bool, str]], scope: Mapping[str, Any], is_true: bool) -> list[str]:
    branches = [list(_render(tokens, scope)), []]
    if tokens.pop(0)[1] == "else":
        branches[1] = list(_render(tokens, scope))
        assert tokens.pop(0)[1] == "end"
    return branches[0 if is_true else 1]


def _range(tokens: list[tuple[bool, str]], scope: Mapping[str, Any], text: str) -> list[str]:
    match = re.fullmatch(r"range \$(\w+), \$(\w+) := (\S+)", text)
    assert match, text
    block = list(tokens)
    parts = []
    for key, value in sorted(evaluate(match[3], scope).items()):
        parts += _render(list(block), {**scope, f"${match[1]}": key, f"${match[2]}": value})
    list(_render(tokens, {**scope, f"${match[1]}": "", f"${match[2]}": ""}))
    assert tokens.pop(0)[1] == "end"
    return parts


def evaluate(expression: str, scope: Mapping[str, Any]) -> Any:
    """The value of a pipeline."""
    first, *filters = (part.strip() for part in expression.split("|"))
    value = _call(first.split(), scope)
    for part in filters:
        name, *arguments = part.split()
        if name == "quote":
            value = f'"{value}"'
        elif name == "nindent":
            indent = " " * int(arguments[0])
            value = "".join(f"\n{indent}{line}" for line in str(value).splitlines())
        else:
            raise ValueError(f"no filter {name}")
    return value


def _call(words: list[str], scope: Mapping[str, Any]) -> Any:
    name, *arguments = words
    values = [_value(word, scope) for word in (arguments or words)]
    match name if arguments else "":
        case "":
            return values[0]
        case "add":
            return sum(values)
        case "eq":
            return values[0] == values[1]
        case "toYaml":
            return yaml.safe_dump(values[0], default_flow_style=False).strip()
    raise ValueError(f"no function {name}")


def _value(word: str, scope: Mapping[str, Any]) -> Any:
    if word.startswith('"'):
        return word.strip('"')
    if word.isdecimal():
        return int(word)
    value: Any = scope
    for key in word.removeprefix(".").split("."):
        value = value[key]
    return value


def _merge(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(one)
    for key, value in other.items():
        both = isinstance(value, Mapping) and isinstance(one.get(key), Mapping)
        merged[key] = _merge(one[key], value) if both else value
    return merged


def manifest(name: str) -> str:
    head = f"# deploy/helm/tutti rendered with {' and '.join(MANIFESTS[name])}; change it there.\n"
    return head + render_chart(chart_values(*MANIFESTS[name]))


if __name__ == "__main__":
    for name in MANIFESTS:
        (DEPLOY / "kubernetes" / name).write_text(manifest(name))

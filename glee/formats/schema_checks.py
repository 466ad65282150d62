"""What a manifest's schemas, defaults and examples must satisfy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from glee.errors import DefinitionError
from glee.formats import expectation
from glee.formats.finding import Finding, dig, kind_of, mapping
from glee.schemas.defaults import compile_defaults
from glee.schemas.validator import Path, SchemaFault, Validator, find_schema_fault, nearest, to_pointer


def check_schemas(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    schema = dig(manifest, "inputs", "schema")
    if isinstance(schema, dict):
        fault = find_schema_fault(schema)
        if fault:
            yield _schema_finding(("inputs", "schema"), fault)
        else:
            yield from check_required(schema)
            yield from check_defaults(schema)
            yield from check_example_params(manifest, schema)
    output = dig(manifest, "outputs", "schema")
    if output is not None:
        fault = find_schema_fault(output)
        if fault:
            yield _schema_finding(("outputs", "schema"), fault)
            output = None
    yield from check_expected(manifest, output)


def _schema_finding(base: Path, fault: SchemaFault) -> Finding:
    outside = "retrieving" in fault.message
    hint = "refer only to what stands in the schema itself" if outside else fault.hint or "mend the schema"
    return Finding((*base, *fault.path), "schema", f"not valid JSON Schema 2020-12: {fault.message}", hint)


def check_required(schema: Mapping[str, Any]) -> Iterator[Finding]:
    """A required input that no property admits could never be given."""
    if schema.get("additionalProperties") is not False or "patternProperties" in schema:
        return
    known = list(mapping(schema, "properties"))
    for index, name in enumerate(schema.get("required", [])):
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean {near}?" if near else f"add {name} to properties"
            yield Finding(("inputs", "schema", "required", index), "required", f"{name!r} is not a property", hint)


def check_defaults(schema: Mapping[str, Any]) -> Iterator[Finding]:
    """Each default against the subschema it belongs to, wherever `properties` lead; compiled all at once."""
    found = list(_find_defaults(schema, ()))
    if not found:
        return
    root = {"$id": "urn:glee:root", **schema}
    base = str(root["$id"]).rstrip("#")
    places = [{"$ref": f"{base}#{quote(to_pointer(path))}"} for path, _ in found]
    try:
        validator = Validator({"prefixItems": places, "$defs": {"root": root}})
    except DefinitionError:
        return
    for (index, *rest), _, error in validator.errors([default for _, default in found]):
        yield Finding(
            ("inputs", "schema", *found[int(index)][0], "default", *rest),
            "default",
            f"the default does not fit its own schema: {validator.explain(error).message}",
            "change the default or the schema",
        )


def _find_defaults(schema: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    for sub, here in _subschemas(schema, path):
        if isinstance(sub, Mapping):
            if "default" in sub:
                yield here, sub["default"]
            yield from _find_defaults(sub, here)


def _subschemas(schema: Any, path: Path) -> Iterator[tuple[Any, Path]]:
    for keyword in ("properties", "$defs", "definitions"):
        for name, sub in mapping(schema, keyword).items():
            yield sub, (*path, keyword, name)
    if isinstance(schema, Mapping):
        yield schema.get("items"), (*path, "items")
        every = schema.get("allOf")
        for index, sub in enumerate(every if isinstance(every, list) else ()):
            yield sub, (*path, "allOf", index)


def _examples(manifest: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    examples = manifest.get("examples")
    if isinstance(examples, list):
        yield from ((index, item) for index, item in enumerate(examples) if isinstance(item, Mapping))


def check_example_params(manifest: Mapping[str, Any], schema: dict[str, Any]) -> Iterator[Finding]:
    if not any(True for _ in _examples(manifest)):
        return
    validator, fill = Validator(schema), compile_defaults(schema)
    for index, example in _examples(manifest):
        params = example.get("params")
        if not isinstance(params, dict):
            continue
        for path, _, error in validator.errors(fill(params) if fill else params):
            yield Finding(
                ("examples", index, "params", *path),
                "example",
                f"the example does not fit inputs.schema: {validator.explain(error).message}",
                "change the example or the schema",
            )


def check_expected(manifest: Mapping[str, Any], schema: Any) -> Iterator[Finding]:
    json_wanted = _output_format(manifest) == "json"
    validator = Validator(schema) if schema is not None else None
    for index, example in _examples(manifest):
        expected = example.get("expected_output")
        if "expected_output" not in example or not json_wanted:
            continue
        path: Path = ("examples", index, "expected_output")
        if isinstance(expected, str):
            try:
                expected = expectation.parse_expected(expected)
            except ValueError as error:
                yield Finding(
                    path, "example", f"the expected output is not JSON: {error}", "write JSON, or outputs.format: text"
                )
                continue
        yield from _check_expected_value(path, expected, validator)


def _check_expected_value(path: Path, expected: Any, validator: Validator | None) -> Iterator[Finding]:
    if validator is None:
        return
    for at, _, error in validator.errors(expectation.without_rest(expected)):
        if not expectation.is_open(expected, at, validator.explain(error).rule):
            yield Finding(
                path,
                "example",
                f"the expected output does not fit outputs.schema: {validator.explain(error).message}",
                "change the example or the schema",
            )


def _output_format(manifest: Mapping[str, Any]) -> str:
    own = {"command": ("command", "stdout", "format"), "python": ("python", "return")}
    kind = str(kind_of(manifest))
    declared = dig(manifest, "outputs", "format") or (dig(manifest, "exec", *own[kind]) if kind in own else None)
    return str(declared or ("text" if kind == "command" else "json"))

"""`@glee.tool`: a typed function as a tool. Its signature is the schema, its docstring what a model reads."""

from __future__ import annotations

import functools
import hashlib
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Literal, ParamSpec, TypeVar, overload

import msgspec

from glee.definitions.context import Context
from glee.definitions.json_text import encode_json, to_json_value
from glee.definitions.permissions import Permissions
from glee.definitions.tool import (
    GROUPS,
    Approval,
    Example,
    Format,
    FunctionExec,
    Origin,
    Outputs,
    Schema,
    Tool,
)
from glee.errors import DefinitionError
from glee.schemas.validator import Validator

P = ParamSpec("P")
R = TypeVar("R")

_PLAIN = (str, int, float, bool, type(None), Any, list, dict)
_SECTIONS = ("Args:", "Arguments:", "Parameters\n", ":param ", "Params:", "Returns:", ":return", "Returns\n")


class FunctionTool(Generic[P, R]):
    """A function that is also a tool. Called directly, it is still just the function."""

    def __init__(self, function: Callable[P, R], options: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._options = options
        self._definition: Tool | None = None
        if not _is_method(function):
            self._definition = define(function, **options)

    @property
    def definition(self) -> Tool:
        if self._definition is None:
            raise DefinitionError(
                f"{self._function.__qualname__} is a method: take it from an instance, as in glee.toolset(instance)"
            )
        return self._definition

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> FunctionTool[..., R]:
        if instance is None:
            return self
        return FunctionTool(self._function.__get__(instance, owner), self._options)

    def __repr__(self) -> str:
        return f"<FunctionTool {self._definition.name if self._definition else self._function.__qualname__}>"


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    version: int | str = 1,
    group: str | None = None,
    permissions: Permissions | Mapping[str, Any] | None = None,
    approval: Approval | Mapping[str, Any] | str | None = None,
    examples: Iterable[Example | Mapping[str, Any]] = (),
    dangerous: bool = False,
    idempotent: bool = False,
    timeout_ms: int | None = None,
    blocking: bool | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a tool of a typed function, sync or async.

    `approval` may be just the reason a person is told. `blocking=True` always runs a plain function in
    a thread, `blocking=False` never; without it, a function runs in place once it has proved quick.
    """
    if function is not None:
        return FunctionTool(function, options)
    return lambda function: FunctionTool(function, options)


def toolset(instance: Any) -> list[FunctionTool[..., Any]]:
    """The tools among an object's methods, in the order of their names."""
    kind = type(instance)
    names = [name for name in dir(kind) if isinstance(inspect.getattr_static(kind, name), FunctionTool)]
    return [getattr(instance, name) for name in names]


def define(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    version: int | str = 1,
    group: str | None = None,
    permissions: Permissions | Mapping[str, Any] | None = None,
    approval: Approval | Mapping[str, Any] | str | None = None,
    examples: Iterable[Example | Mapping[str, Any]] = (),
    dangerous: bool = False,
    idempotent: bool = False,
    timeout_ms: int | None = None,
    blocking: bool | None = None,
) -> Tool:
    """The definition of a function."""
    target = f"{function.__module__}:{function.__qualname__}"
    text, parameter_texts = _read_docstring(function)
    hints = _hints(function, target)
    inputs, converters, context_parameter = _inputs(function, hints, parameter_texts, target)
    definition = Tool(
        name=name or function.__name__,
        description=description or text or function.__name__.replace("_", " "),
        kind="function",
        version=version,
        inputs=inputs,
        outputs=_outputs(hints.get("return", Any)),
        exec=FunctionExec(
            function=function,
            target=target,
            asynchronous=inspect.iscoroutinefunction(function),
            context_parameter=context_parameter,
            converters=converters,
            blocking=blocking,
            timeout_ms=timeout_ms,
        ),
        permissions=_convert(permissions or {}, Permissions, target, "permissions"),
        approval=_approval(approval, target),
        examples=tuple(_convert(example, Example, target, "examples") for example in examples),
        group=_group(group, target),
        dangerous=dangerous,
        idempotent=idempotent,
        origin=Origin(source="program", location=target),
        digest=hashlib.sha256(target.encode() + encode_json(inputs)).hexdigest(),
    )
    _check_examples(definition, target)
    return definition


def _is_method(function: Callable[..., Any]) -> bool:
    """True for a function in a class body: it has no instance yet."""
    if inspect.ismethod(function):
        return False
    parameters = list(inspect.signature(function).parameters)
    in_class = "." in function.__qualname__ and not function.__qualname__.rsplit(".", 1)[0].endswith("<locals>")
    return in_class and bool(parameters) and parameters[0] in ("self", "cls")


def _hints(function: Callable[..., Any], target: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise DefinitionError(f"{target}: an annotation cannot be read: {error}; import the type it names") from error


def _inputs(
    function: Callable[..., Any], hints: Mapping[str, Any], texts: Mapping[str, str], target: str
) -> tuple[Schema, dict[str, Any], str | None]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    converters: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    context_parameter = None
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints.get(name, Any)
        if hint is Context:
            context_parameter = name
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise DefinitionError(f"{target}: the parameter {name} has no name of its own; tools take named inputs")
        schema, defs = _schema_of(hint, f"{target}: the parameter {name}")
        definitions.update(defs)
        schema = {**schema, **_describe(hint, texts.get(name))}
        if parameter.default is parameter.empty:
            required.append(name)
        elif _is_json(parameter.default):
            schema["default"] = to_json_value(parameter.default)
        properties[name] = schema
        if not _is_plain(hint):
            converters[name] = hint
    inputs: Schema = {"type": "object", "additionalProperties": False, "properties": properties}
    if required:
        inputs["required"] = required
    if definitions:
        inputs["$defs"] = definitions
    return inputs, converters, context_parameter


def _schema_of(hint: Any, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    if hint is Any:
        return {}, {}
    try:
        (schema,), definitions = msgspec.json.schema_components([hint], ref_template="#/$defs/{name}")
    except TypeError as error:
        raise DefinitionError(
            f"{where} has a type no JSON Schema can be made of: {error}; "
            "use plain types, Literal, enums, dataclasses or TypedDicts"
        ) from error
    return schema, definitions


def _describe(hint: Any, text: str | None) -> dict[str, str]:
    for extra in getattr(hint, "__metadata__", ()):
        if isinstance(extra, str):
            text = extra
    return {"description": text} if text else {}


def _is_plain(hint: Any) -> bool:
    """True for types whose JSON value is already what the function expects."""
    origin = typing.get_origin(hint)
    if origin is None:
        return hint in _PLAIN
    arguments = typing.get_args(hint)
    if origin is typing.Annotated:
        return _is_plain(arguments[0])
    if origin is Literal:
        return all(isinstance(item, str | int | bool | None) for item in arguments)
    if origin in (list, dict, typing.Union) or str(origin) == "<class 'types.UnionType'>":
        return all(_is_plain(argument) for argument in arguments)
    return False


def _is_json(value: Any) -> bool:
    try:
        encode_json(to_json_value(value))
    except (TypeError, ValueError):
        return False
    return True


def _outputs(hint: Any) -> Outputs:
    if hint is str:
        return Outputs(format="text")
    form: Format = "json"
    if hint in (Any, None, type(None)):
        return Outputs(format=form)
    try:
        schema, definitions = _schema_of(hint, "the return value")
    except DefinitionError:
        return Outputs(format=form)
    return Outputs(format=form, schema={**schema, "$defs": definitions} if definitions else schema)


def _read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    text = inspect.getdoc(function) or ""
    if not any(section in text for section in _SECTIONS):
        return text.strip(), {}
    import docstring_parser

    parsed = docstring_parser.parse(text)
    whole = "\n\n".join(filter(None, (parsed.short_description, parsed.long_description)))
    return whole.strip(), {p.arg_name: p.description for p in parsed.params if p.description}


def _convert(value: Any, kind: type[Any], target: str, field: str) -> Any:
    if isinstance(value, kind):
        return value
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise DefinitionError(f"{target}: {field}: {error}") from error


def _approval(value: Any, target: str) -> Approval:
    if isinstance(value, str):
        return Approval(required=True, reason=value)
    approval: Approval = _convert(value or {}, Approval, target, "approval")
    if approval.required and not approval.reason.strip():
        raise DefinitionError(f"{target}: approval is required without a reason; say what a person should know")
    return approval


def _group(group: str | None, target: str) -> str | None:
    group = "web" if group == "net" else group
    if group is not None and group not in GROUPS:
        raise DefinitionError(f"{target}: the group {group!r} is unknown; use one of {', '.join(GROUPS)}")
    return group


def _check_examples(definition: Tool, target: str) -> None:
    validator = Validator(definition.inputs)
    for example in definition.examples:
        for violation in validator.violations(example.params):
            raise DefinitionError(
                f"{target}: the example {example.description or example.params} does not fit: {violation.message}"
            )

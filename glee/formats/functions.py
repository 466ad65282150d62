"""`@glee.tool`: a typed function as a tool. Its signature is the schema, its docstring what a model reads."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar, overload

import msgspec

from glee.definitions.json_text import encode_json
from glee.definitions.permissions import Permissions
from glee.definitions.tool import (
    GROUPS,
    Approval,
    Example,
    FunctionExec,
    Origin,
    Tool,
)
from glee.errors import DefinitionError
from glee.formats.signature import read_docstring, read_hints, read_inputs, read_outputs
from glee.schemas import load_schema
from glee.schemas.validator import Validator

P = ParamSpec("P")
R = TypeVar("R")


class FunctionTool(Generic[P, R]):
    """A function that is also a tool. Called directly, it is still just the function."""

    def __init__(self, function: Callable[P, R], options: Mapping[str, Any]) -> None:
        if not callable(function) or not hasattr(function, "__qualname__"):
            raise DefinitionError(f"{function!r} is not a function; write a def that calls it")
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
    if isinstance(instance, type):
        raise DefinitionError(f"toolset takes an instance: toolset({instance.__name__}(...))")
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
    _refuse_generator(function, target)
    text, parameter_texts = read_docstring(function)
    hints = read_hints(function, target)
    inputs = read_inputs(function, hints, parameter_texts, target)
    granted: Permissions = _convert(permissions or {}, Permissions, target, "permissions")
    _refuse_hosts(granted, target)
    asked, text = _approval(approval, target), description or text
    definition = Tool(
        name=_name(name or function.__name__, target),
        description=text or function.__name__.replace("_", " "),
        kind="function",
        version=version,
        inputs=inputs.schema,
        outputs=read_outputs(hints.get("return", Any)),
        exec=FunctionExec(
            function=function,
            target=target,
            asynchronous=inspect.iscoroutinefunction(function),
            context_parameter=inputs.context_parameter,
            integers=inputs.integers,
            converters=inputs.converters,
            blocking=blocking,
            timeout_ms=_timeout(timeout_ms, target),
        ),
        permissions=granted,
        approval=asked,
        examples=tuple(_convert(example, Example, target, "examples") for example in examples),
        group=_group(group, target),
        dangerous=dangerous,
        idempotent=idempotent,
        origin=Origin(source="program", location=target),
        digest=hashlib.sha256(encode_json([target, version, text, inputs.schema, granted, asked])).hexdigest(),
    )
    _check_examples(definition, target)
    return definition


def _refuse_generator(function: Callable[..., Any], target: str) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DefinitionError(f"{target} is a generator; collect what it yields and return it as a list")


def _refuse_hosts(granted: Permissions, target: str) -> None:
    for name, need in granted.secrets.items():
        if need.host is not None:
            raise DefinitionError(
                f"{target}: the secret {name} has a host, which is for kinds command and python; "
                "a function holds the value itself"
            )


def is_name(name: str) -> bool:
    rule = load_schema("tool")["properties"]["name"]
    return len(name) <= rule["maxLength"] and re.fullmatch(rule["pattern"], name) is not None


def _name(name: str, target: str) -> str:
    if not is_name(name):
        raise DefinitionError(f"{target}: {name!r} cannot name a tool; use letters, digits, _ . and -")
    return name


def _timeout(timeout_ms: int | None, target: str) -> int | None:
    if timeout_ms is not None and timeout_ms < 1:
        raise DefinitionError(f"{target}: timeout_ms is {timeout_ms}; give at least one millisecond")
    return timeout_ms


def _is_method(function: Callable[..., Any]) -> bool:
    """True for a function in a class body: it has no instance yet."""
    if inspect.ismethod(function):
        return False
    parameters = list(inspect.signature(function).parameters)
    in_class = "." in function.__qualname__ and not function.__qualname__.rsplit(".", 1)[0].endswith("<locals>")
    return in_class and bool(parameters) and parameters[0] in ("self", "cls")


def _convert(value: Any, kind: type[Any], target: str, field: str) -> Any:
    if isinstance(value, kind):
        return value
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise DefinitionError(f"{target}: {field}: {error}") from error


def _approval(value: Any, target: str) -> Approval:
    if isinstance(value, str):
        value = Approval(required=True, reason=value)
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

"""Runs inside the tool's own interpreter: calls one function and writes what came of it to a descriptor.

Started as a script with the descriptor's number; the request is JSON on standard input. With the word
`template` it imports the module once, and forks for each call; `python_template` has that part. It imports
nothing of Glee, because the tool's interpreter need not have it, and nothing newer than Python 3.8.
"""

import sys

STARTED_WITH = set(sys.modules)

import importlib  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import traceback  # noqa: E402


def main(channel):
    os.set_inheritable(channel, False)
    request = read_request()
    sys.path[:0] = request["path"]
    sys.path += request["after"]
    answer(channel, request, lambda: find(request["module"], request["function"], request["path"]))


def read_request():
    request = json.load(sys.stdin)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return request


def answer(channel, request, find_function):
    step = "importing " + request["module"]
    try:
        function = find_function()
        step = request["function"]
        value = call(function, request)
        step = "writing what " + request["function"] + " returned as JSON"
        text = json.dumps({"value": value}, default=plain, allow_nan=False, ensure_ascii=False)
    except Missing as error:
        text = json.dumps({"missing": str(error)}, ensure_ascii=False)
    except BaseException as error:
        text = json.dumps({**describe(error), "step": step}, ensure_ascii=False)
    try:
        sys.stdout.flush()
    except Exception:  # noqa: S110 the function closed or replaced it
        pass
    with open(channel, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)


def call(function, request):
    value = function(*request["args"], **request["kwargs"])
    if hasattr(value, "__await__"):
        import asyncio

        async def wait():
            return await value

        value = asyncio.run(wait())
    if request["return"] == "text":
        return value if isinstance(value, str) else str(value)
    return value


class Missing(Exception):
    """The module or function that the manifest names is not there."""


def find(module, function, folders):
    first = module.partition(".")[0]
    if first in sys.modules and first not in STARTED_WITH and is_below(folders, first):
        del sys.modules[first]  # only this file wanted it, and the tool's own comes before it
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module + ".").startswith(error.name + "."):
            raise Missing("there is no module " + module) from None
        raise
    if not hasattr(found, function):
        raise Missing("the module " + module + " has no function " + function)
    return getattr(found, function)


def is_below(folders, name):
    places = [folder + "/" + name for folder in folders]
    return any(os.access(place + end, os.R_OK) for place in places for end in ("", ".py"))


def plain(value):
    import dataclasses

    if dataclasses.is_dataclass(value):
        return dataclasses.asdict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "__fspath__"):
        return str(value)
    raise TypeError(f"the function returned a {type(value).__name__}, which is not JSON")


def describe(error):
    return {
        "type": type(error).__name__,
        "message": str(error),
        "traceback": "".join(traceback.format_exception(type(error), error, error.__traceback__)),
    }


if __name__ == "__main__":
    if sys.argv[2:] == ["template"]:
        sys.path.insert(0, sys.argv[0].rpartition("/")[0])
        template = importlib.import_module("python_template")
        del sys.path[0]
        template.main(int(sys.argv[1]), sys.modules["__main__"])
    else:
        main(int(sys.argv[1]))

"""What each step of the pipeline does for one call. Their order stands in `pipeline`."""

from __future__ import annotations

import contextlib
import copy
import time
import traceback
from collections.abc import Awaitable
from typing import Any

from msgspec import structs

from glee.account import Account
from glee.approval import Answer, Question
from glee.artifacts.keeper import Keeper
from glee.catalog.source import Summary
from glee.config import Limits
from glee.copies import IMMUTABLE, copy_call, copy_value, own
from glee.definitions.call import Call
from glee.definitions.decision import Ask, Decision, Deny
from glee.definitions.event import Decided, Finished, Requested, Started
from glee.definitions.json_text import encode_json
from glee.definitions.result import Artifact, Failure, Result
from glee.definitions.tool import Tool
from glee.errors import (
    ApprovalRequired,
    CallError,
    Denied,
    GleeError,
    Internal,
    NotFound,
    Rejected,
    TimedOut,
)
from glee.parts import Parts
from glee.runners import Outcome, Run
from glee.runners.waiting import on_event_loop, running_loop
from glee.secrets.environment import Secrets
from glee.secrets.redaction import NOTHING

_USUAL_TIMEOUT = Limits().timeout_ms
_MOST_MESSAGE = 4000
_MOST_DETAILS = 200_000
_UNHELD = "the sandbox is off in your config, so nothing held this tool to its permissions"


class Walk:
    """One call on its way."""

    __slots__ = ("account", "arguments", "began", "call", "claimed", "id", "parts", "ran", "said", "tool")

    def __init__(self, parts: Parts, call: Call) -> None:
        self.parts = parts
        self.call = call
        self.id = parts.new_id()
        self.began = time.perf_counter()
        self.tool: Tool = None  # type: ignore[assignment]
        self.arguments: dict[str, Any] = call.arguments
        self.account = Account(call, self.id, parts.audit, parts.events, parts.now)
        self.claimed = False
        self.ran = False
        self.said = ""

    def resolve(self) -> None:
        tool = self.parts.catalog.find(self.call.tool)
        if tool is not None:
            self.account.redactor = self.parts.secrets.get_redactor(tool.permissions)
        self.arguments = own(self.call.arguments)
        if tool is not None and self.call.vocabulary is None:
            self.tool = self.account.tool = tool
        if self.parts.events.listeners:
            self.account.tell(Requested, call=copy_call(self.account.shown_call()))
        if self.tool is None:
            raise self._unknown()

    def _unknown(self) -> CallError:
        """Why there is no such tool, with the nearest names this caller may know of."""
        if self.call.vocabulary is not None:
            return NotFound(f"there is no vocabulary {self.call.vocabulary}; call the tool by its own name")
        name, caller, parts = self.call.tool, self.call.caller, self.parts
        broken = parts.catalog.find_broken(name)
        if broken is not None:
            verdict = parts.policy.visible(Summary(name=name), caller)
            if isinstance(verdict, Deny):
                return Denied(verdict.reason)
            listed = "; ".join(map(str, broken.problems[:3]))
            return NotFound(f"the tool {name} has a broken definition: {listed}")
        visible = [
            summary.name
            for summary in parts.catalog.summaries()
            if summary.broken is None and not isinstance(parts.policy.visible(summary, caller), Deny)
        ]
        near = parts.catalog.nearest(name, visible)
        hint = f"did you mean {' or '.join(near)}?" if near else "run `glee list` to see what there is"
        return NotFound(f"there is no tool {name}; {hint}", details={"nearest": near})

    def check_visible(self) -> None:
        verdict = self.parts.policy.visible(self.tool, self.call.caller)
        if isinstance(verdict, Deny):
            if self.parts.events.listeners:
                self.account.tell(Decided, decision=verdict)
            rule = str(verdict.rule) if verdict.rule else None
            raise Denied(verdict.reason, details={"rule": rule})

    def validate(self) -> None:
        self.arguments = self.parts.shapes.check_inputs(self.tool, self.arguments, self.account.redact)
        check = getattr(self.parts.runners[self.tool.kind], "check", None)
        if check is not None:
            check(self.tool, self.arguments)

    def decide(self) -> Decision:
        decision = self.parts.policy.decide(self.tool, self.arguments, self.call)
        if self.parts.events.listeners and not isinstance(decision, Ask):
            self.account.tell(Decided, decision=decision)
        return decision

    async def approve(self, decision: Decision) -> None:
        if isinstance(decision, Deny):
            raise Denied(decision.reason, details={"rule": str(decision.rule) if decision.rule else None})
        if not isinstance(decision, Ask):
            return
        approver = self.parts.approver
        if not getattr(approver, "answers_in_place", False):
            await on_event_loop()
        arguments = own(self.account.redact(self.arguments))
        shown = structs.replace(copy_call(self.account.shown_call()), arguments=arguments)
        question = Question(call_id=self.id, tool=copy.deepcopy(self.tool), call=shown, reason=decision.reason)
        answer = await self._in_time(approver.ask(question))
        if self.parts.events.listeners:
            self.account.tell(Decided, decision=decision, approved=answer == "yes")
        if answer == "no":
            raise Rejected(f"a person said no to {self.tool.name}; do not try again without asking them")
        if answer != "yes":
            raise ApprovalRequired(
                f"{self.tool.name} needs a person's approval: {decision.reason}; "
                "call it where a person can answer (--yes at the terminal, approver= in Python)",
                details={"reason": decision.reason},
            )

    async def _in_time(self, asking: Awaitable[Answer]) -> Answer:
        """A person may take as long as they like, unless the caller said how long it will wait."""
        if self.call.deadline is None or running_loop() is None:
            return await asking
        import asyncio

        try:
            return await asyncio.wait_for(asking, max(0.0, self.call.deadline - self.parts.now()))
        except TimeoutError as error:
            raise TimedOut("nobody answered before the call's deadline; nothing was run") from error

    def claim(self) -> Result | None:
        """An earlier result under the same idempotency key, or None if this call is to run."""
        if self.call.idempotency_key is None:
            return None
        earlier = self.parts.claims.claim(self.call, self.id)
        if earlier is None:
            self.claimed = True
            return None
        warning = f"answered from call {earlier.call_id}, which had the same idempotency key; nothing was run"
        result = structs.replace(earlier, call_id=self.id, warnings=(*earlier.warnings, warning))
        return self.record(result, "TOOL_REPLAYED")

    def get_secrets(self) -> Secrets:
        """The redactor is made anew: a value may have changed while a person was asked."""
        self.account.redactor = self.parts.secrets.get_redactor(self.tool.permissions)
        return self.parts.secrets.get(self.tool.permissions)

    async def run(self, secrets: Secrets) -> Outcome:
        """The record comes first: what cannot be recorded does not run."""
        timeout, strict = self._timeout()
        self.account.record("TOOL_CALLED", self.arguments)
        if self.call.deadline is not None:
            timeout, strict = self._timeout()  # recording may have taken what was left
        self.ran = True
        if self.parts.events.listeners:
            self.account.tell(Started)
        return await self.parts.runners[self.tool.kind].run(
            Run(
                tool=self.tool,
                arguments=self.arguments,
                secrets=secrets,
                redactor=self.account.redactor,
                root=self.parts.root,
                call_id=self.id,
                caller=self.call.caller,
                timeout=timeout,
                strict_timeout=strict,
                output_bytes=self.parts.limits.output_bytes,
                progress=self.account.tell_progress,
                held=self.account.hold,
            )
        )

    def _timeout(self) -> tuple[float, bool]:
        own = self.tool.exec.timeout_ms
        seconds = (own or self.parts.limits.timeout_ms) / 1000
        if self.call.deadline is None:
            return seconds, own is not None or self.parts.limits.timeout_ms < _USUAL_TIMEOUT
        left = self.call.deadline - self.parts.now()
        if not left > 0:
            raise TimedOut("the call's deadline has passed; nothing was run")
        return min(seconds, left), True

    def shape(self, outcome: Outcome) -> Result:
        redactor = self.account.redactor
        output = self.account.redact(outcome.output)
        self.said = outcome.said
        warnings = outcome.warnings + self.parts.shapes.check_output(self.tool, outcome.output, self.account.redact)
        artifacts: tuple[Artifact, ...] = ()
        if outcome.raw is not None:
            artifacts, lost = self._keeper().keep(redactor.data(outcome.raw), "bin")
            warnings = (*warnings, *(f"the bytes as they came are {kept.handle}" for kept in artifacts), *lost)
        if warnings and redactor is not NOTHING:
            warnings = tuple(map(redactor.text, warnings))
        return Result(
            ok=True,
            tool=self.tool.name,
            call_id=self.id,
            output=output,
            warnings=warnings,
            artifacts=artifacts,
            exit_code=outcome.exit_code,
            duration_ms=self._duration(),
        )

    def cut(self, result: Result) -> Result:
        return self._keeper().cut(result, self.parts.limits.output_chars)

    def _keeper(self) -> Keeper:
        return Keeper(self.parts.artifacts, self.id)

    def fail(self, error: GleeError) -> Result:
        """A result without output. The operator's part of the error goes to the log, never to the caller."""
        redactor = self.account.redactor
        if error.detail:
            text = redactor.text(error.detail.rstrip())
            with contextlib.suppress(Exception):  # an operator who cannot be told is no reason to lose the call
                self.parts.tell_operator(f"call {self.id} of {self.call.tool}: {text}")
        message = redactor.text(error.message)
        failure = Failure(
            code=error.code,
            message=message if len(message) <= _MOST_MESSAGE else f"{message[:_MOST_MESSAGE]}…",
            details=_bound(self.account.redact(error.details)),
        )
        return Result(
            ok=False,
            tool=self.account.name(),
            call_id=self.id,
            error=failure,
            warnings=tuple(map(redactor.text, error.warnings)),
            exit_code=error.details.get("exit_code"),
            duration_ms=self._duration(),
        )

    def record(self, result: Result, event: str | None = None) -> Result:
        """The last step: the line after the run, the claim's result, the last event."""
        self.account.is_over = True
        if self.account.isolation is not None and self.account.isolation.level == "off":
            result = structs.replace(result, warnings=(*result.warnings, _UNHELD))
        status = "success" if result.error is None else result.error.code
        event = event or ("TOOL_EXECUTED" if self.ran else "TOOL_REFUSED")
        try:
            self.account.record(event, self.arguments, status)
        except Exception as error:  # whatever it is, the call is over and has a result
            reason = str(error) if isinstance(error, GleeError) else f"not recorded: {type(error).__name__}"
            if self.ran:
                reason = f"it ran, but the record does not say how it ended: {error.__cause__ or error}"
            result = structs.replace(result, warnings=(*result.warnings, reason))
        if self.claimed:
            if self.ran:
                self.parts.claims.settle(self.call, result)
            else:
                self.parts.claims.release(self.call)
        if self.parts.events.listeners:
            told = result
            if result.error is not None or type(result.output) not in IMMUTABLE:
                told = structs.replace(result, output=copy_value(result.output), error=copy_value(result.error))
            said = self.account.redactor.text(self.said)
            self.account.tell(Finished, result=told, said=said, isolation=self.account.isolation)
        return result

    def _duration(self) -> float:
        return round((time.perf_counter() - self.began) * 1000, 3)


def _bound(details: dict[str, Any]) -> dict[str, Any]:
    """Details are for acting on; what is too much for that is left out, and said to be."""
    size = len(encode_json(details))
    return details if size <= _MOST_DETAILS else {"cut": True, "size": size}


def unexpected(error: Exception) -> GleeError:
    """An error nobody foresaw: the caller learns its kind, the operator all of it."""
    if isinstance(error, GleeError):
        return Internal(error.message, detail=error.detail, details=error.details)
    return Internal(
        f"Glee failed on this call: {type(error).__name__}; the operator's log has the details",
        detail="".join(traceback.format_exception(error)),
    )

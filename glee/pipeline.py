"""The one path every call takes. Its order is a safety property, so it is written down here and nowhere else.

resolve → visible? → validate → decide → approve → claim → secrets → run → shape → cut → record
"""

from __future__ import annotations

from glee.definitions.call import Call
from glee.definitions.result import Result
from glee.errors import CallError, Cancelled
from glee.parts import Parts
from glee.steps import Walk, unexpected


class Pipeline:
    """It holds no rule of its own: what each step does is in `steps`, what decides is in the rooms."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def call(self, call: Call) -> Result:
        """Always a result, whatever the tool does; only cancellation is passed on, once it is recorded."""
        walk = Walk(self._parts, call)
        try:
            walk.resolve()
            walk.check_visible()
            walk.validate()
            decision = walk.decide()
            await walk.approve(decision)
            earlier = walk.claim()
            if earlier is not None:
                return earlier
            secrets = walk.get_secrets()
            outcome = await walk.run(secrets)
            output = walk.shape(outcome)
            result = walk.cut(output)
        except CallError as error:
            result = walk.fail(error)
        except Exception as error:
            result = walk.fail(unexpected(error))
        except BaseException:  # cancelled, interrupted, or the coroutine was closed
            walk.record(walk.fail(Cancelled("the call was cancelled")))
            raise
        return walk.record(result)

import schemathesis
from schemathesis.core.failures import Failure
from schemathesis.core.transport import Response
from schemathesis.openapi.checks import RejectedPositiveData


@schemathesis.hook
def filter_failure(ctx: schemathesis.HookContext, failure: Failure, case: schemathesis.Case, response: Response) -> bool:
    """Drops refusals of valid requests whose reason no schema can describe."""
    if not isinstance(failure, RejectedPositiveData):
        return True
    error = response.json()
    # A cursor comes from an earlier response, and an Idempotency-Key belongs to the first animal sent with it.
    if error["code"] in ("invalid_cursor", "idempotency_key_reused"):
        return False
    # Only strict requests refuse unknown names.
    is_strict = response.headers.get("preference-applied") == ["handling=strict"]
    return not (is_strict and error["message"].startswith("unknown "))

"""The token endpoint, the sign-in page, and the check of access tokens."""

import html

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from pixivflow.simulator.accounts import Accounts, GrantRefused
from pixivflow.simulator.connections import App
from pixivflow.simulator.faults import Fault
from pixivflow.simulator.gate import ADMIN, FAULT
from pixivflow.simulator.parameters import Parameters
from pixivflow.simulator.refusals import Refusal, bad_token, grant_refused, json_answer

CALLBACK = "/web/v1/users/auth/pixiv/callback"


class SignIn:
    """The endpoints around tokens."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    def routes(self) -> list[Route]:
        """Path and endpoint of each."""
        return [
            Route("/auth/token", self.token, methods=["POST"]),
            Route("/web/v1/login", self.login),
            Route("/web/v1/provisional-accounts/create", self.login),
            Route(CALLBACK, self.callback),
        ]

    async def token(self, request: Request) -> Response:
        """Refresh, or exchange a code."""
        fault: Fault | None = request.scope.get(FAULT)
        async with request.form() as form:
            fields = {key: value for key, value in form.items() if isinstance(value, str)}
        if fault is not None and fault.kind == "refuse_refresh":
            return _refused(GrantRefused("Invalid refresh token", "invalid_grant"))
        try:
            return json_answer(self._accounts.grant(fields))
        except GrantRefused as refused:
            return _refused(refused)

    async def login(self, request: Request) -> Response:
        """Give the sign-in page; everybody is let in at once and sent on with a code."""
        parameters = Parameters(request)
        challenge = parameters.text("code_challenge")
        parameters.choice("code_challenge_method", ("S256",))
        code = self._accounts.open_code(challenge)
        return RedirectResponse(f"{CALLBACK}?state=simulated&code={code}", 302)

    async def callback(self, request: Request) -> Response:
        """Give the last hop in a browser: on to the app's own scheme, and the code to read for people."""
        code = Parameters(request).text("code")
        target = f"pixiv://account/login?code={code}&via=login"
        shown = html.escape(target)
        page = f'<!DOCTYPE html><html><body><p>Signed in. <a href="{shown}">{shown}</a></p></body></html>'
        return Response(page, 302, {"location": target}, media_type="text/html")


class BearerCheck:
    """Refuses API calls without a good access token."""

    def __init__(self, app: App, accounts: Accounts) -> None:
        self._app = app
        self._accounts = accounts

    async def __call__(self, scope: dict[str, object], receive: object, send: object) -> None:
        """Let a request through, or answer it."""
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            answer = Response(refusal.body, refusal.status, media_type="application/json")
            await answer(scope, receive, send)  # type: ignore[arg-type]  # plain ASGI values pass through here

    def _refusal(self, scope: dict[str, object]) -> Refusal | None:
        request = Request(scope)
        if request.url.path.startswith((ADMIN, "/auth/", "/web/")):
            return None
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return bad_token("invalid_request")
        fault: Fault | None = request.scope.get(FAULT)
        if fault is not None and fault.kind == "expire_token":
            self._accounts.expire(token)
        return None if self._accounts.is_valid(token) else bad_token("invalid_grant")


def _refused(refused: GrantRefused) -> Response:
    return Response(grant_refused(refused.message, refused.error), 400, media_type="application/json")

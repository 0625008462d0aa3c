"""A receiver of deliveries that keeps its promises: one key, one post."""

import builtins
import hashlib
from collections.abc import Callable, Mapping

import msgspec
import trio
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pixivflow.clock import Wall
from pixivflow.simulator.faults import Fault
from pixivflow.simulator.gate import FAULT
from pixivflow.simulator.refusals import json_answer
from pixivflow.simulator.requests import SeenRequest

KEPT_BYTES = 256 << 20
SUBMISSIONS = "/submissions"


class ReceivedFile(msgspec.Struct, frozen=True):
    """A file of a post. ``bytes`` is empty once the receiver holds more than 256 MiB of newer files."""

    name: str
    media_type: str
    bytes: builtins.bytes
    sha256: str
    field: str = ""
    size: int = 0


class Post(msgspec.Struct, frozen=True):
    """What a reader of the channel sees, and the key and credentials that came with it."""

    id: str
    key: str
    fields: Mapping[str, str]
    files: tuple[ReceivedFile, ...]
    at_ms: int
    authorization: str | None = None
    work: str | None = None

    @property
    def content(self) -> str:
        """A digest of everything that the sender chose."""
        files = [(file.field, file.name, file.media_type, file.sha256) for file in self.files]
        facts = msgspec.json.encode((sorted(self.fields.items()), files))
        return hashlib.sha256(facts).hexdigest()


class Attempt(msgspec.Struct, frozen=True):
    """One request to post.

    ``outcome`` is the status word that was answered, ``lost`` when it took effect and the answer was withheld,
    ``cut`` when the client left while sending, or the kind of the fault that kept the request from the
    receiver.
    """

    key: str | None
    outcome: str
    at_ms: int


class Receiver:
    """The channel: ``posts`` in the order of becoming visible, ``attempts`` in the order of arrival.

    With ``dedup_work`` a work that was posted under another key is answered ``duplicate``.
    """

    def __init__(self, wall: Wall, *, dedup_work: bool = False, kept_bytes: int = KEPT_BYTES) -> None:
        self._wall = wall
        self._by_key: dict[str, Post] = {}
        self._kept_bytes = kept_bytes
        self.dedup_work = dedup_work
        self.posts: list[Post] = []
        self.attempts: list[Attempt] = []
        self._changed = trio.Event()

    def routes(self) -> list[Route]:
        """Path and endpoint of each; other kinds of receivers, such as a JSON hook, come here."""
        return [
            Route(SUBMISSIONS, self.submit, methods=["POST"]),
            Route("/ready", self.ready),
            Route("/posts", self.show),
        ]

    def post(self, key: str) -> Post | None:
        """Give the post with this key, once it is visible."""
        return self._by_key.get(key)

    async def until(self, condition: Callable[["Receiver"], bool]) -> None:
        """Wait until a condition holds for this receiver; looked at after each attempt."""
        while not condition(self):
            await self._changed.wait()

    def clear(self) -> None:
        """Forget all posts, keys and attempts."""
        self._by_key.clear()
        self.posts.clear()
        self.attempts.clear()

    def note_unseen(self, request: SeenRequest, word: str) -> None:
        """Remember a request to post that did not get here."""
        if request.path == SUBMISSIONS:
            self._note(request.headers.get("idempotency-key"), word)

    async def submit(self, request: Request) -> Response:
        """Take a post."""
        fault: Fault | None = request.scope.get(FAULT)
        key = request.headers.get("idempotency-key")
        if not key:
            return self._answer(key, 400, "invalid", "the header Idempotency-Key is missing")
        if not request.headers.get("content-type", "").startswith("multipart/form-data"):
            return self._answer(key, 400, "invalid", "the body must be multipart/form-data")
        try:
            async with request.form(max_part_size=16 << 20) as form:
                post = await self._read(request, key, form)
        except HTTPException as error:
            return self._answer(key, 400, "invalid", error.detail)
        if fault is not None and fault.kind == "conflict":
            return self._answer(key, 409, "conflict")
        status, word, known = self._take(post)
        if fault is not None and fault.kind == "lose_answer":
            word = "lost"
        return self._answer(key, status, word, post_id=known.id)

    async def ready(self, request: Request) -> Response:
        """Whether posts are taken."""
        fault: Fault | None = request.scope.get(FAULT)
        ready = fault is None or fault.kind != "not_ready"
        return json_answer({"ready": ready}, 200 if ready else 503)

    async def show(self, _request: Request) -> Response:
        """Give the posts for people and other processes, without the bytes of their files."""
        return json_answer([_summary(post) for post in self.posts])

    def _take(self, post: Post) -> tuple[int, str, Post]:
        known = self._by_key.get(post.key)
        if known is not None:
            same = known.content == post.content
            return (200, "replayed", known) if same else (409, "conflict", known)
        if self.dedup_work and post.work is not None:
            for earlier in self.posts:
                if earlier.work == post.work:
                    return 200, "duplicate", earlier
        self._by_key[post.key] = post
        self.posts.append(post)
        self._forget_old_bytes()
        return 201, "accepted", post

    async def _read(self, request: Request, key: str, form: FormData) -> Post:
        fields = {name: value for name, value in form.multi_items() if isinstance(value, str)}
        files = [
            await _file(name, value) for name, value in form.multi_items() if isinstance(value, UploadFile)
        ]
        return Post(
            id=f"post-{hashlib.blake2b(key.encode(), digest_size=6).hexdigest()}",
            key=key,
            fields=fields,
            files=tuple(files),
            at_ms=self._wall.now_ms(),
            authorization=request.headers.get("authorization"),
            work=request.headers.get("x-pixivflow-work") or fields.get("work"),
        )

    def _forget_old_bytes(self) -> None:
        held = 0
        for place in range(len(self.posts) - 1, -1, -1):
            post = self.posts[place]
            held += sum(file.size for file in post.files)
            if held > self._kept_bytes and any(file.bytes for file in post.files):
                emptied = tuple(msgspec.structs.replace(file, bytes=b"") for file in post.files)
                self.posts[place] = msgspec.structs.replace(post, files=emptied)
                self._by_key[post.key] = self.posts[place]

    def _answer(
        self, key: str | None, status: int, word: str, message: str = "", *, post_id: str | None = None
    ) -> Response:
        self._note(key, word)
        extra = {"id": post_id} if post_id else {"message": message} if message else {}
        return json_answer({"status": word} | extra, status)

    def _note(self, key: str | None, outcome: str) -> None:
        self.attempts.append(Attempt(key, outcome, self._wall.now_ms()))
        self._changed.set()
        self._changed = trio.Event()


async def _file(field: str, upload: UploadFile) -> ReceivedFile:
    data = await upload.read()
    digest = await trio.to_thread.run_sync(lambda: hashlib.sha256(data).hexdigest())
    media_type = upload.content_type or "application/octet-stream"
    return ReceivedFile(upload.filename or "", media_type, data, digest, field, len(data))


def _summary(post: Post) -> dict[str, object]:
    files = [
        {"field": file.field, "name": file.name, "media_type": file.media_type, "size": file.size, "sha256": file.sha256}
        for file in post.files
    ]  # fmt: skip
    return {
        "id": post.id,
        "key": post.key,
        "fields": post.fields,
        "files": files,
        "at_ms": post.at_ms,
        "work": post.work,
    }

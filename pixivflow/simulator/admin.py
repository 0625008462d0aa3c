"""The door for other processes: faults, the request log, the catalogue."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pixivflow.simulator.catalogue import SimWork
from pixivflow.simulator.faults import Fault, Faults
from pixivflow.simulator.gate import ADMIN
from pixivflow.simulator.refusals import json_answer
from pixivflow.simulator.requests import RequestLog
from pixivflow.simulator.world import World


def fault_routes(faults: Faults) -> list[Route]:
    """``/_simulator/faults``: list, add, clear."""

    async def show(_request: Request) -> Response:
        return json_answer(faults.active)

    async def add(request: Request) -> Response:
        try:
            fault = msgspec.json.decode(await request.body(), type=Fault)
        except msgspec.MsgspecError as error:
            return _not_understood("a fault", error)
        faults.add(fault)
        return json_answer(fault, 201)

    async def clear(_request: Request) -> Response:
        faults.clear()
        return Response(status_code=204)

    path = f"{ADMIN}faults"
    return [
        Route(path, show, methods=["GET"]),
        Route(path, add, methods=["POST"]),
        Route(path, clear, methods=["DELETE"]),
    ]


def work_routes(world: World) -> list[Route]:
    """``/_simulator/works``: add with overrides (created now unless told), change, remove."""
    catalogue = world.catalogue

    async def add(request: Request) -> Response:
        plain = catalogue.make_work(created=world.now.replace(microsecond=0))
        try:
            work = _overridden(plain, await request.body())
        except (msgspec.MsgspecError, ValueError) as error:
            return _not_understood("fields of a work", error)
        catalogue.add(work)
        return json_answer({"id": work.id}, 201)

    async def change(request: Request) -> Response:
        work = catalogue.works.get(request.path_params["id"])
        if work is None:
            return json_answer({"message": "no such work"}, 404)
        try:
            changed = _overridden(work, await request.body())
        except (msgspec.MsgspecError, ValueError) as error:
            return _not_understood("fields of a work", error)
        catalogue.add(msgspec.structs.replace(changed, id=work.id))
        return json_answer({"id": work.id})

    async def remove(request: Request) -> Response:
        if request.path_params["id"] not in catalogue.works:
            return json_answer({"message": "no such work"}, 404)
        catalogue.remove(request.path_params["id"])
        return Response(status_code=204)

    path = f"{ADMIN}works"
    return [
        Route(path, add, methods=["POST"]),
        Route(path + "/{id:int}", change, methods=["PATCH"]),
        Route(path + "/{id:int}", remove, methods=["DELETE"]),
    ]


def log_routes(requests: RequestLog) -> list[Route]:
    """``/_simulator/requests``: what was asked so far."""

    async def show(_request: Request) -> Response:
        return json_answer(requests.summary())

    return [Route(f"{ADMIN}requests", show)]


def _overridden(work: SimWork, body: bytes) -> SimWork:
    changes = msgspec.json.decode(body or b"{}", type=dict[str, msgspec.Raw])
    unknown = sorted(set(changes) - set(SimWork.__struct_fields__))
    if unknown:
        raise ValueError(f"unknown fields: {', '.join(unknown)}")
    plain = msgspec.json.decode(msgspec.json.encode(work), type=dict[str, msgspec.Raw])
    return msgspec.json.decode(msgspec.json.encode(plain | changes), type=SimWork)


def _not_understood(expected: str, error: Exception) -> Response:
    return json_answer({"message": f"expected {expected} in JSON: {error}"}, 400)

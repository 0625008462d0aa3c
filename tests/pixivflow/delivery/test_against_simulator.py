"""The sender and the look-alike receiver, each written without the other."""

from pixivflow.delivery.freeze import freeze
from pixivflow.delivery.senders import open_sender
from pixivflow.delivery.settings import MultipartSettings
from pixivflow.simulator.faults import Fault
from pixivflow.simulator.server import open_simulator
from protocol.verdicts import VerdictKind


def route_to(simulator):
    base = simulator.receiver_url.removesuffix("/submissions")
    return MultipartSettings(name="channel", url=f"{base}/submissions", readiness_url=f"{base}/ready")


def message(route, facts, files=()):
    return freeze(route, {}, facts, files, slot_id="morning@20261130T230000Z", target_id="landscape")


async def test_a_lost_answer_ends_in_one_post(roots, facts, store):
    async with open_simulator(works=1) as simulator:
        simulator.faults.add(Fault("/submissions", "lose_answer"))
        route = route_to(simulator)
        frozen = message(route, facts, [store("夕.png", b"one")])
        async with open_sender(route, roots) as sender:
            verdicts = [await sender.send(frozen) for _ in range(2)]

        assert [verdict.kind for verdict in verdicts] == [VerdictKind.RETRY, VerdictKind.REPLAYED]
        (post,) = simulator.receiver.posts
        assert (post.key, post.files[0].name, post.files[0].bytes) == (frozen.key, "夕.png", b"one")
        assert post.fields["title"] == facts.title


async def test_a_conflict_is_a_rejection(roots, facts):
    async with open_simulator(works=1) as simulator:
        simulator.faults.add(Fault("/submissions", "conflict"))
        route = route_to(simulator)
        async with open_sender(route, roots) as sender:
            assert (await sender.send(message(route, facts))).kind is VerdictKind.REJECTED


async def test_readiness_is_asked(roots):
    async with open_simulator(works=1) as simulator:
        simulator.faults.add(Fault("/ready", "not_ready"))
        async with open_sender(route_to(simulator), roots) as sender:
            assert [await sender.ready() for _ in range(2)] == [False, True]

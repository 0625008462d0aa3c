from hypothesis import given
from hypothesis import strategies as st

from pixivflow.delivery.breaker import Breaker

T = 1_800_000_000_000


def opened(now=T):
    breaker = Breaker()
    for _ in range(5):
        breaker = breaker.failed(now)
    return breaker


def test_four_failures_leave_it_closed():
    breaker = Breaker().failed(T).failed(T).failed(T).failed(T)

    assert not breaker.is_open
    assert breaker.allows(T)
    assert breaker.next_probe_ms is None


def test_a_success_between_starts_the_count_again():
    breaker = Breaker().failed(T).failed(T).failed(T).failed(T).succeeded().failed(T)

    assert breaker == Breaker(failures=1)


def test_five_failures_in_a_row_open_it_for_thirty_seconds():
    breaker = opened()

    assert breaker.is_open
    assert not breaker.allows(T + 29_999)
    assert breaker.allows(T + 30_000)


def test_one_probe_passes_at_a_time():
    probing = opened().probing(T + 30_000)

    assert not probing.allows(T + 30_001)


def test_a_probe_that_never_came_back_blocks_for_one_delay_only():
    probing = opened().probing(T + 30_000)

    assert probing.allows(T + 60_000)


def test_failed_probes_double_the_delay_up_to_fifteen_minutes():
    breaker, now, delays = opened(), T, []
    for _ in range(7):
        now = breaker.next_probe_ms
        delays.append(breaker.probe_delay_s)
        breaker = breaker.probing(now).failed(now)

    assert delays == [30, 60, 120, 240, 480, 900, 900]


def test_a_straggler_from_before_the_opening_does_not_double_the_delay():
    late = opened().failed(T + 1000)

    assert late.next_probe_ms == T + 30_000
    assert late.probe_delay_s == 30


def test_a_good_probe_closes_it_and_forgets_the_delay():
    assert opened().probing(T + 30_000).succeeded() == Breaker()


def test_probing_means_nothing_while_closed():
    assert Breaker(failures=2).probing(T) == Breaker(failures=2)


def test_a_clock_set_back_does_not_shut_the_route_for_ever():
    assert opened().allows(T - 86_400_000)


@given(st.lists(st.sampled_from(["fail", "probe", "succeed"]), max_size=30))
def test_every_state_survives_storing(steps):
    breaker, now = Breaker(), T
    for step in steps:
        now += 7000
        match step:
            case "fail":
                breaker = breaker.failed(now)
            case "probe":
                breaker = breaker.probing(now)
            case "succeed":
                breaker = breaker.succeeded()

    assert Breaker.decode(breaker.encode()) == breaker
    assert Breaker.decode(breaker.encode().decode()) == breaker


def test_nothing_and_nonsense_decode_to_a_closed_breaker():
    assert Breaker.decode(None) == Breaker.decode(b"") == Breaker.decode("nonsense") == Breaker()

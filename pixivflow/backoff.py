"""How long to wait before the next attempt."""

import random

MAX_DOUBLINGS = 30


def retry_delay(
    attempts: int, base_s: float, cap_s: float, rng: random.Random, *, at_least_s: float = 0.0
) -> float:
    """Return seconds to wait after failure number ``attempts`` (counted from 0).

    ``base + uniform(0, min(cap, base * 2**attempts))``: spread over the whole window, also at the cap, and never
    below ``at_least_s`` (a server's Retry-After).
    """
    window = min(cap_s, base_s * 2.0 ** min(attempts, MAX_DOUBLINGS))
    return max(at_least_s, base_s + rng.uniform(0.0, window))

"""Which cases of a list a test takes: one in a few, in turn, from one that a seed draws. ESPALIER_SEED repeats a sample."""
import functools
import os
import random


@functools.cache
def seed():
    given = os.environ.get("ESPALIER_SEED")
    drawn = random.SystemRandom().getrandbits(32) if given is None else int(given)
    print(f"a sample; ESPALIER_SEED={drawn} repeats it", flush=True)
    return drawn


def sampled(number, of):
    """Whether case `number` is in the sample of one in `of`."""
    return number % of == seed() % of

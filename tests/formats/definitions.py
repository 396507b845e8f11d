"""What the collectives must give, on numbers: the definition with which the interpreters of this folder compare."""
import random

MODULUS = 1 << 64


def inputs(collective, ranks, chunks, root, seed):
    """The input buffer of each rank, one number per chunk; `chunks` are those of the whole message."""
    dice = random.Random(seed)
    part = chunks // ranks if collective in ("gather", "allgather") else chunks
    holders = [root] if collective in ("broadcast", "scatter") else range(ranks)
    return [[dice.randrange(MODULUS) for _ in range(part)] if rank in holders else [] for rank in range(ranks)]


def outputs(collective, given, root):
    """The output buffer that each rank must have; empty: none."""
    ranks = len(given)
    whole = len(given[root])
    part = whole // ranks
    sums = [sum(column) % MODULUS for column in zip(*given)]
    if collective == "broadcast":
        return [[] if rank == root else given[root] for rank in range(ranks)]
    if collective == "reduce":
        return [sums if rank == root else [] for rank in range(ranks)]
    if collective == "allreduce":
        return [sums] * ranks
    if collective in ("scan", "exscan"):
        ends = range(1, ranks + 1) if collective == "scan" else range(ranks)
        return [[sum(column) % MODULUS for column in zip(*given[:end])] for end in ends]
    if collective == "scatter":
        return [given[root][rank * part:(rank + 1) * part] for rank in range(ranks)]
    if collective in ("gather", "allgather"):
        everything = [chunk for row in given for chunk in row]
        return [everything if collective == "allgather" or rank == root else [] for rank in range(ranks)]
    if collective == "reduce-scatter":
        return [sums[rank * part:(rank + 1) * part] for rank in range(ranks)]
    if collective == "all-to-all":
        return [[chunk for row in given for chunk in row[rank * part:(rank + 1) * part]] for rank in range(ranks)]
    raise ValueError(collective)

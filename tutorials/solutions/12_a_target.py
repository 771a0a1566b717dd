"""Solution of tutorial 12: what faster links and faster scratchpads are worth."""


def answer(machine, cycles_of):
    links = {name: {"bytes_per_cycle": 64} for name in ("load", "store")}
    scratchpads = {"near": {"read_bytes_per_cycle": 128}}
    return {
        "links": cycles_of(machine.overridden(link=links)),
        "scratchpads": cycles_of(machine.overridden(memory=scratchpads)),
    }

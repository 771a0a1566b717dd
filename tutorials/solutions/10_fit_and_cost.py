"""Solution of tutorial 10: a faster memory of the chip."""


def answer(machine):
    ddr = machine.memory("ddr")
    rates = ("read_bytes_per_cycle", "write_bytes_per_cycle")
    return machine.overridden(memory={"ddr": {rate: 2 * getattr(ddr, rate) for rate in rates}})

"""Independent judges: iteration times by the definitions of docs/schedules.md, straight from the operations' names."""

import random
import sys
from functools import cache

import pytest

from poseidon.schedule import get_schedule
from poseidon.simulate import stage_times


def judge_time(operations, times, num_chunks, placement="loop"):
    """Iteration time of each stage's operations (``F0.1``), by a recursion that shares no code with the package."""
    num_stages = len(operations)
    last = num_stages * num_chunks - 1
    loop = placement == "loop"

    def virtual_of(stage, chunk):
        return chunk * num_stages + (stage if loop or chunk % 2 == 0 else num_stages - 1 - stage)

    places = {virtual_of(stage, chunk): (stage, chunk) for stage in range(num_stages) for chunk in range(num_chunks)}
    parsed = [
        [(name[0], int((name[1:] + ".0").split(".")[0]), int((name[1:] + ".0").split(".")[1])) for name in names]
        for names in operations
    ]
    duration = {"F": times.forward_ms, "B": times.backward_ms, "I": times.input_ms, "W": times.weight_ms}

    @cache
    def end(stage, position):
        kind, microbatch, chunk = parsed[stage][position]
        start = end(stage, position - 1) if position else 0.0
        virtual = virtual_of(stage, chunk)
        if kind == "F" and virtual > 0:
            sender, from_chunk = places[virtual - 1]
            place = parsed[sender].index(("F", microbatch, from_chunk))
            ahead = loop or stage > sender
            wire_ms = (times.send_forward_ms if ahead else times.send_backward_ms)[sender]
            start = max(start, end(sender, place) + (wire_ms if loop or stage != sender else 0.0))
        if kind in "BI" and virtual < last:
            sender, from_chunk = places[virtual + 1]
            gradient = "B" if ("B", microbatch, from_chunk) in parsed[sender] else "I"
            place = parsed[sender].index((gradient, microbatch, from_chunk))
            back = loop or stage < sender
            wire_ms = (times.send_backward_ms if back else times.send_forward_ms)[sender]
            start = max(start, end(sender, place) + (wire_ms if loop or stage != sender else 0.0))
        return start + duration[kind][stage][chunk]

    for position in range(max(map(len, parsed))):  # keeps the recursion shallow
        for stage in range(num_stages):
            if position < len(parsed[stage]):
                end(stage, position)
    return max(end(stage, len(names) - 1) + times.all_reduce_ms[stage] for stage, names in enumerate(parsed))


def blocking_judge_time(order, times):
    """Iteration time where stages stand still while they send and receive; RecursionError if they never meet."""
    num_stages, last = order.num_stages, order.num_stages * order.num_chunks - 1
    batches = [split_into_batches(actions, order.num_chunks) for actions in order.stages]
    duration = {"F": times.forward_ms, "B": times.backward_ms, "I": times.input_ms, "W": times.weight_ms}
    makers = {
        (action.kind if action.kind == "F" else "G", order.virtual_stage(stage, action.chunk), action.microbatch): (
            stage,
            number,
        )
        for stage in range(num_stages)
        for number, batch in enumerate(batches[stage])
        for action in batch
        if action.kind != "W"
    }
    takers = {}
    for stage in range(num_stages):
        for number, batch in enumerate(batches[stage]):
            for action in batch:
                if (message := taken(order, stage, action, last)) is not None:
                    takers[message] = (stage, number)
    hops = {
        message: (*makers[message], *takers[message], link_ms(order, times, message, makers, takers))
        for message in takers
        if makers[message][0] != takers[message][0] or (num_stages == 1 and order.placement == "loop")
    }

    def sent(stage, number):
        """Messages of a batch in the order in which it makes them."""
        names = []
        for action in batches[stage][number] if number >= 0 else ():
            name = ("F" if action.kind == "F" else "G", order.virtual_stage(stage, action.chunk), action.microbatch)
            if action.kind != "W" and name in hops and hops[name][:2] == (stage, number):
                names.append(name)
        return names

    def received(stage, number):
        return [name for name, hop in hops.items() if hop[2:4] == (stage, number)]

    @cache
    def entry(stage, number):
        """When the stage begins to talk before its batch `number`."""
        return batch_end(stage, number - 1) if number else 0.0

    @cache
    def batch_end(stage, number):
        talks = sent(stage, number - 1)
        if number < len(batches[stage]):
            talks = talks + received(stage, number)
        time = max([entry(stage, number), *(arrival(name) for name in talks)])
        for action in batches[stage][number] if number < len(batches[stage]) else ():
            time = time + duration[action.kind][stage][action.chunk]
        return time

    @cache
    def arrival(name):
        sender, made, receiver, used, wire_ms = hops[name]
        start = entry(sender, made + 1)
        together = sent(sender, made)
        if together.index(name):
            start = arrival(together[together.index(name) - 1])
        if sender != receiver:
            start = max(start, entry(receiver, used))
            if order.num_chunks == 1:
                others = [other for other in sent(receiver, used - 1) if hops[other][2] != sender]
                start = max([start, *map(arrival, others)])
        return start + wire_ms

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(5_000)
    try:
        return max(batch_end(stage, len(batches[stage])) + times.all_reduce_ms[stage] for stage in range(num_stages))
    finally:
        sys.setrecursionlimit(limit)


def split_into_batches(actions, num_chunks):
    result = []
    for action in actions:
        pair = num_chunks > 1 and result and len(result[-1]) == 1
        if pair and result[-1][0].kind == "F" and action.kind in "BI":
            result[-1].append(action)
        else:
            result.append([action])
    return result


def taken(order, stage, action, last):
    """The message that an operation takes from another virtual stage, if any."""
    virtual = order.virtual_stage(stage, action.chunk)
    if action.kind == "F" and virtual > 0:
        return "F", virtual - 1, action.microbatch
    if action.kind in "BI" and virtual < last:
        return "G", virtual + 1, action.microbatch
    return None


def link_ms(order, times, message, makers, takers):
    sender, receiver = makers[message][0], takers[message][0]
    ahead = message[0] == "F" if order.placement == "loop" else receiver > sender
    return (times.send_forward_ms if ahead else times.send_backward_ms)[sender]


def random_times(rng, num_stages, num_chunks=1):
    """Times as they come: stages differ, some transfers and all-reduces take nothing."""
    per_chunk = [[rng.uniform(0.5, 4) for _ in range(num_chunks)] for _ in range(3 * num_stages)]
    per_stage = [rng.choice([0.0, rng.uniform(0, 3)]) for _ in range(3 * num_stages)]
    return stage_times(
        per_chunk[:num_stages],
        per_chunk[num_stages : 2 * num_stages],
        input_ms=per_chunk[2 * num_stages :],
        weight_ms=per_chunk[:num_stages],
        send_forward_ms=per_stage[:num_stages],
        send_backward_ms=per_stage[num_stages : 2 * num_stages],
        all_reduce_ms=per_stage[2 * num_stages :],
    )


def random_order(rng):
    """An order of one of the schedules, small enough for the judge; every other one with some backwards split."""
    name = rng.choice(["1f1b", "eager_1f1b", "gpipe", "interleaved_1f1b", "adaptive_1f1b"])
    num_stages = rng.randint(1, 6)
    num_chunks = rng.randint(1, 4) if name == "interleaved_1f1b" else 1
    num_micro_batches = num_stages * rng.randint(1, 3) if name == "interleaved_1f1b" else rng.randint(1, 12)
    depths = [rng.randint(1, 3) for _ in range(num_stages - 1)] if name == "adaptive_1f1b" else ()
    return get_schedule(name).order(num_stages, num_micro_batches, num_chunks, depths=depths)


@pytest.fixture
def judge():
    return judge_time


@pytest.fixture
def blocking_judge():
    return blocking_judge_time


@pytest.fixture
def make_times():
    return random_times


@pytest.fixture
def make_order():
    return random_order


@pytest.fixture(params=range(40))
def rng(request):
    return random.Random(request.param)

"""Orders of a long stretch by the bytes that each node allocates and frees, in n log n."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from tiered.extensions.memory.order_problem import Stretch


def forward_order(stretch: Stretch) -> list[int]:
    """Return an order in which the next node is the one after which the fewest bytes are alive."""
    left = [len(buffer.readers) + buffer.is_needed_later for buffer in stretch.buffers]
    readers = [set(buffer.readers) for buffer in stretch.buffers]
    missing = [len(step.before) for step in stretch.steps]

    def growth(node: int) -> int:
        step = stretch.steps[node]
        made = sum(stretch.buffers[each].nbytes for each in step.makes if left[each])
        return made - sum(stretch.buffers[each].nbytes for each in step.reads if left[each] == 1)

    order: list[int] = []
    pending = [(growth(node), node) for node, count in enumerate(missing) if not count]
    heapify(pending)
    done = [False] * len(missing)
    while pending:
        grown, node = heappop(pending)
        if done[node] or grown != growth(node):
            continue
        done[node] = True
        order.append(node)
        changed: list[int] = []
        for buffer in stretch.steps[node].reads:
            left[buffer] -= 1
            readers[buffer].discard(node)
            if left[buffer] == 1:
                changed += readers[buffer]
        for each in stretch.steps[node].after:
            missing[each] -= 1
            if not missing[each]:
                changed.append(each)
        for each in changed:
            if not missing[each] and not done[each]:
                heappush(pending, (growth(each), each))
    return order


def backward_order(stretch: Stretch) -> list[int]:
    """Return an order in which the last node is the one before which the fewest bytes are alive."""
    is_alive = [buffer.is_needed_later for buffer in stretch.buffers]
    missing = [len(step.after) for step in stretch.steps]

    def growth(node: int) -> int:
        step = stretch.steps[node]
        read = sum(stretch.buffers[each].nbytes for each in step.reads if not is_alive[each])
        return read - sum(stretch.buffers[each].nbytes for each in step.makes if is_alive[each])

    order: list[int] = []
    pending = [(growth(node), -node) for node, count in enumerate(missing) if not count]
    heapify(pending)
    done = [False] * len(missing)
    while pending:
        grown, negative = heappop(pending)
        node = -negative
        if done[node] or grown != growth(node):
            continue
        done[node] = True
        order.append(node)
        changed = []
        for buffer in stretch.steps[node].reads:
            if not is_alive[buffer]:
                is_alive[buffer] = True
                changed += stretch.buffers[buffer].readers
        for each in stretch.steps[node].before:
            missing[each] -= 1
            if not missing[each]:
                changed.append(each)
        for each in changed:
            if not missing[each] and not done[each]:
                heappush(pending, (growth(each), -each))
    return order[::-1]

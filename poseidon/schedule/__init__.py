"""Pipeline schedules as data: each stage's operations in order; how to make, read, check and draw them."""

from poseidon.schedule.action import KINDS, Action, Kind, parse_operation, parse_staged
from poseidon.schedule.adaptive_one_f_one_b import AdaptiveOneFOneB, hiding_depth
from poseidon.schedule.check import check_order
from poseidon.schedule.draw import draw_order
from poseidon.schedule.eager_one_f_one_b import EagerOneFOneB
from poseidon.schedule.gpipe import GPipe
from poseidon.schedule.in_flight import in_flight, peak_in_flight
from poseidon.schedule.interleaved_one_f_one_b import InterleavedOneFOneB
from poseidon.schedule.mistake import Cell, MistakeKind, OrderMistake
from poseidon.schedule.one_f_one_b import OneFOneB
from poseidon.schedule.order import Order
from poseidon.schedule.registry import SCHEDULES, get_schedule
from poseidon.schedule.schedule import Schedule, Shape
from poseidon.schedule.text import order_from_operations, order_from_text, order_to_operations, order_to_text

__all__ = [
    "KINDS",
    "SCHEDULES",
    "Action",
    "AdaptiveOneFOneB",
    "Cell",
    "EagerOneFOneB",
    "GPipe",
    "InterleavedOneFOneB",
    "Kind",
    "MistakeKind",
    "OneFOneB",
    "Order",
    "OrderMistake",
    "Schedule",
    "Shape",
    "check_order",
    "draw_order",
    "get_schedule",
    "hiding_depth",
    "in_flight",
    "order_from_operations",
    "order_from_text",
    "order_to_operations",
    "order_to_text",
    "parse_operation",
    "parse_staged",
    "peak_in_flight",
]

"""Pipeline schedules as data: each stage's operations in order; how to make, read, check and draw them."""

from poseidon.schedule.action import KINDS, Action, Kind, parse_operation, parse_staged
from poseidon.schedule.adaptive_one_f_one_b import AdaptiveOneFOneB, hiding_depth
from poseidon.schedule.automatic import SplitCost, automatic_order
from poseidon.schedule.check import check_order
from poseidon.schedule.draw import draw_order
from poseidon.schedule.dualpipev import DualPipeV
from poseidon.schedule.eager_one_f_one_b import EagerOneFOneB
from poseidon.schedule.gpipe import GPipe
from poseidon.schedule.in_flight import in_flight, peak_in_flight
from poseidon.schedule.interleaved_one_f_one_b import InterleavedOneFOneB
from poseidon.schedule.mistake import Cell, MistakeKind, OrderMistake
from poseidon.schedule.one_f_one_b import OneFOneB
from poseidon.schedule.order import Order
from poseidon.schedule.placement import Placement
from poseidon.schedule.registry import SCHEDULES, SPLIT_SCHEDULES, find_schedule, get_schedule
from poseidon.schedule.schedule import Schedule, Shape
from poseidon.schedule.split_schedule import SplitSchedule
from poseidon.schedule.text import order_from_operations, order_from_text, order_to_operations, order_to_text
from poseidon.schedule.zbv import ZBV
from poseidon.schedule.zero_bubble import ZeroBubbleH1, ZeroBubbleH2

__all__ = [
    "KINDS",
    "SCHEDULES",
    "SPLIT_SCHEDULES",
    "ZBV",
    "Action",
    "AdaptiveOneFOneB",
    "Cell",
    "DualPipeV",
    "EagerOneFOneB",
    "GPipe",
    "InterleavedOneFOneB",
    "Kind",
    "MistakeKind",
    "OneFOneB",
    "Order",
    "OrderMistake",
    "Placement",
    "Schedule",
    "Shape",
    "SplitCost",
    "SplitSchedule",
    "ZeroBubbleH1",
    "ZeroBubbleH2",
    "automatic_order",
    "check_order",
    "draw_order",
    "find_schedule",
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

"""Times a pipeline: the longest path of the graph that an order of operations makes (paper section 4.1)."""

from poseidon.simulate._longest_path import NUM_LANES, LongestPath
from poseidon.simulate.blocking import BlockingGraph, build_blocking_graph
from poseidon.simulate.critical_path import AllReduceStep, OperationStep, Step, TransferStep
from poseidon.simulate.graph import Graph, Weights, build_graph
from poseidon.simulate.simulate import iteration_time, iteration_times, simulate
from poseidon.simulate.size import GraphSize
from poseidon.simulate.stage_times import StageTimes, stage_times
from poseidon.simulate.stages_file import StagesFile, read_stages, stages_from_json
from poseidon.simulate.timeline import StageUse, TimedOperation, Timeline, Transfers

__all__ = [
    "NUM_LANES",
    "AllReduceStep",
    "BlockingGraph",
    "Graph",
    "GraphSize",
    "LongestPath",
    "OperationStep",
    "StageTimes",
    "StageUse",
    "StagesFile",
    "Step",
    "TimedOperation",
    "Timeline",
    "TransferStep",
    "Transfers",
    "Weights",
    "build_blocking_graph",
    "build_graph",
    "iteration_time",
    "iteration_times",
    "read_stages",
    "simulate",
    "stage_times",
    "stages_from_json",
]

from __future__ import annotations

from collections.abc import Callable

from poseidon.inputs.experiment import Experiment
from poseidon.inputs.model import Model
from poseidon.profile.degrees import tp_degrees, tp_refusal


def test_tp_must_divide_the_attention_heads(tiny_model: Model) -> None:
    model = tiny_model.model_copy(update={"num_attention_heads": 52, "num_kv_heads": 52})

    assert [tp for tp in range(1, 9) if tp_refusal(model, tp) is None] == [1, 2, 4]
    assert tp_refusal(model, 8) == "TP 8 does not divide the model's 52 attention heads"


def test_tp_may_exceed_the_key_value_heads_where_they_can_be_replicated(tiny_model: Model) -> None:
    model = tiny_model.model_copy(update={"num_attention_heads": 24, "num_kv_heads": 4})

    assert tp_refusal(model, 8) is None
    assert tp_refusal(model, 6) == "TP 6 neither divides nor is a multiple of the model's 4 key/value heads"


def test_a_tp_group_stays_in_one_node(make_experiment: Callable[..., Experiment]) -> None:
    nodes = [{"accelerator": "fast", "count": 1, "devices": 6}]
    experiment = make_experiment(cluster={"nodes": nodes}, model={"num_attention_heads": 12, "hidden_size": 48})

    assert tp_degrees(experiment.model, experiment.cluster, "fast") == (1, 2, 3, 6)

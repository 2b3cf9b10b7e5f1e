"""The floating-point operations that training a model takes, for MFU.

Counted as in PaLM (Chowdhery et al. 2022, arXiv 2204.02311, appendix B): 6 for each parameter of a matrix product and
token, and the attention core's 12 x layers x heads x head size x sequence length a token, without the causal saving and
without recomputation. Of an MoE layer the experts that a token visits count; the embedding look-up does not, the output
projection does.
"""

from __future__ import annotations

from poseidon.inputs.experiment import Experiment
from poseidon.inputs.model import Model


def attention_flops_per_token(model: Model, seq_length: int) -> int:
    """Scores and weighted values of all layers, forward and backward; of a sliding window the window."""
    if model.mla is not None:
        width = model.mla.qk_nope_head_dim + model.mla.qk_rope_head_dim + model.mla.v_head_dim
    else:
        width = 2 * model.head_dim
    attended = min(model.sliding_window or seq_length, seq_length)
    return 6 * model.num_layers * model.num_attention_heads * width * attended


def flops_per_token(model: Model, seq_length: int) -> int:
    """Forward and backward pass of one token in a sequence of the given length."""
    layers = sum(model.active_layer_parameters(layer_type) for layer_type in model.layer_types)
    return 6 * (layers + model.output_projection_parameters) + attention_flops_per_token(model, seq_length)


def flops_per_iteration(experiment: Experiment) -> int:
    """All tokens of the global batch."""
    training = experiment.training
    tokens = training.global_batch_size * training.seq_length
    return tokens * flops_per_token(experiment.model, training.seq_length)

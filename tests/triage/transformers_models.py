"""Ten small random models of transformers, each with the inputs that it is called with: right programs, on which
triage must raise no alarm.

    model, example_inputs = build("gpt2", training=True)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers

LAYERS = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32}
WORDS = {"vocab_size": 99, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
LANGUAGE = {**LAYERS, **WORDS, "intermediate_size": 64, "max_position_embeddings": 64}
Built = tuple[torch.nn.Module, tuple[Any, ...]]


def tokens(length: int = 12) -> torch.Tensor:
    return torch.randint(3, 99, (2, length))


def llama() -> Built:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**LANGUAGE, num_key_value_heads=2)), (tokens(),)


def qwen3() -> Built:
    config = transformers.Qwen3Config(**LANGUAGE, num_key_value_heads=2, head_dim=8)
    return transformers.Qwen3ForCausalLM(config), (tokens(),)


def mixtral() -> Built:
    config = transformers.MixtralConfig(**LANGUAGE, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2)
    return transformers.MixtralForCausalLM(config), (tokens(),)


def gpt2() -> Built:
    config = transformers.GPT2Config(n_layer=2, n_head=4, n_embd=32, n_positions=64, **WORDS)
    return transformers.GPT2LMHeadModel(config), (tokens(),)


def bert() -> Built:
    return transformers.BertForMaskedLM(transformers.BertConfig(**LANGUAGE)), (tokens(), torch.ones(2, 12).long())


def t5() -> Built:
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(**sizes, **WORDS))
    return model, (tokens(), None, tokens(7))


def vit() -> Built:
    config = transformers.ViTConfig(**LAYERS, intermediate_size=64, image_size=32, patch_size=8)
    return transformers.ViTForImageClassification(config), (torch.randn(2, 3, 32, 32),)


def whisper() -> Built:
    sizes = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "num_mel_bins": 16, "max_source_positions": 20}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
    config = transformers.WhisperConfig(
        **sizes, **heads, **WORDS, max_target_positions=20, decoder_start_token_id=1, suppress_tokens=None
    )
    return transformers.WhisperForConditionalGeneration(config), (torch.randn(2, 16, 40), None, tokens(7))


def mamba() -> Built:
    config = transformers.MambaConfig(hidden_size=32, num_hidden_layers=2, state_size=8, **WORDS)
    return transformers.MambaForCausalLM(config), (tokens(),)


def clip() -> Built:
    image = {**LAYERS, "intermediate_size": 64, "image_size": 32, "patch_size": 8}
    config = transformers.CLIPConfig(text_config=dict(LANGUAGE), vision_config=image, projection_dim=16)
    return transformers.CLIPModel(config), (tokens(), torch.randn(2, 3, 32, 32))


MODELS: dict[str, Callable[[], Built]] = {
    build.__name__: build for build in (llama, qwen3, mixtral, gpt2, bert, t5, vit, whisper, mamba, clip)
}


def build(name: str, training: bool = False) -> Built:
    """The model, always the same, in `eval()` or in training, and its inputs."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    return model.train(training), inputs

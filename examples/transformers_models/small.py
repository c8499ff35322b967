"""Models of the transformers library with small configurations, as micrographs: graphs that nobody here wrote.

    pip install transformers
    conformance fidelity record models.json.gz --micrographs examples/transformers_models           (on the GPU)
    conformance fidelity compare models.json.gz --micrographs examples/transformers_models          (on any machine)
    conformance run -b inductor --micrographs examples/transformers_models

The weights are random. Attention is that of plain matrix products ("eager"), so that its kernels are the compiler's own; every model is
in training, without dropout, so that its backward is compiled, too."""

from __future__ import annotations

import torch
import transformers

from conformance import Contract, Micrograph, Tensor

VOCABULARY = 96
SMALL = {"num_hidden_layers": 1, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48}
NO_DROPOUT = {
    "attention_dropout": 0.0,
    "hidden_dropout": 0.0,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


class _Model(Micrograph):
    """One language model, made of its configuration; `weight` asks for gradients of all of its parameters."""

    inputs = (Tensor("2 9", torch.int64, fill=f"index:{VOCABULARY}"), Tensor("2 9 1", grad=True))
    contract = Contract()
    model, config = "", ""
    made_with: dict[str, object] = {}

    def __init__(self) -> None:
        super().__init__()
        config = getattr(transformers, self.config)(
            **{**SMALL, "vocab_size": VOCABULARY, **NO_DROPOUT, **self.made_with}
        )
        config._attn_implementation = "eager"
        config.use_cache = False
        torch.manual_seed(0)
        self.inner = getattr(transformers, self.model)(config).train()

    def forward(self, words, weight):
        return self.inner(words).logits * weight


class _Pictures(_Model):
    """A model of pictures, whose last hidden state is looked at."""

    inputs = (Tensor("2 3 32 32", grad=True),)

    def forward(self, picture):
        return self.inner(picture).last_hidden_state


class Llama(_Model):
    """Rotary positions, RMSNorm, SwiGLU, grouped keys and values."""

    model, config, made_with = "LlamaForCausalLM", "LlamaConfig", {"num_key_value_heads": 2}


class Qwen3(_Model):
    """Queries and keys normed."""

    model, config, made_with = "Qwen3ForCausalLM", "Qwen3Config", {"num_key_value_heads": 2, "head_dim": 8}


class Gemma2(_Model):
    """Soft caps, and norms before and after each part."""

    model, config, made_with = "Gemma2ForCausalLM", "Gemma2Config", {"num_key_value_heads": 2, "head_dim": 8}


class Phi(_Model):
    """Attention and MLP side by side, rotary positions on a part of each head."""

    model, config = "PhiForCausalLM", "PhiConfig"
    made_with = {"num_key_value_heads": 4, "resid_pdrop": 0.0, "embd_pdrop": 0.0}


class GPT2(_Model):
    """Learned positions, one projection for queries, keys and values."""

    model, config = "GPT2LMHeadModel", "GPT2Config"
    made_with = {"n_layer": 1, "n_embd": 32, "n_head": 4, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}


class OPT(_Model):
    """Learned positions with an offset, ReLU."""

    model, config = "OPTForCausalLM", "OPTConfig"
    made_with = {
        "ffn_dim": 48,
        "word_embed_proj_dim": 32,
        "max_position_embeddings": 32,
        "dropout": 0.0,
        "pad_token_id": 1,
    }


class Bert(_Model):
    """An encoder with segment embeddings and a pooler."""

    model, config = "BertForMaskedLM", "BertConfig"


class DistilBert(_Model):
    """An encoder with other names for the same sizes."""

    model, config = "DistilBertForMaskedLM", "DistilBertConfig"
    made_with = {"n_layers": 1, "dim": 32, "n_heads": 4, "hidden_dim": 48, "dropout": 0.0}


class Mamba(_Model):
    """A state space model: a scan in plain PyTorch."""

    model, config, made_with = "MambaForCausalLM", "MambaConfig", {"state_size": 8, "use_mambapy": False}


class ViT(_Pictures):
    """Patches of a picture."""

    model, config, made_with = "ViTModel", "ViTConfig", {"image_size": 32, "patch_size": 8}


class ConvNext(_Pictures):
    """Depthwise convolutions and layer norm over channels."""

    model, config = "ConvNextModel", "ConvNextConfig"
    made_with = {"depths": [1, 1], "hidden_sizes": [8, 16], "num_stages": 2, "drop_path_rate": 0.0}


class ResNet(_Pictures):
    """Convolutions and batch norm in training."""

    model, config = "ResNetModel", "ResNetConfig"
    made_with = {"depths": [1, 1], "hidden_sizes": [8, 16], "embedding_size": 8, "layer_type": "basic"}

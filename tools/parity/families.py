# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""The router of each family of transformers, as data: a line of FAMILIES each.

What a router is called with, and what it returns, is in routers.py. A family that
has no line, and is no copy of one that has, is in docs/models.md with a reason.
"""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Family:
    name: str  # the folder in transformers/models
    router: str  # its class in modeling_<name>.py
    config: str  # its class in configuration_<name>.py
    preset: str = ""  # if it is not the name
    # The method of routers.py that runs it, if its class differs from most routers.
    how: str = "tuple"
    # Values that the configuration gets besides experts, top_k and width.
    config_says: dict[str, Any] = dataclasses.field(default_factory=dict)
    # A checkpoint's shape, if the configuration has none or not one of a checkpoint.
    experts: int = 0
    top_k: int = 0
    # The router's matrix is so much larger, where its input is normalised.
    gain: float = 1.0
    # In a model of another type its parameters stay f32.
    keeps_f32: bool = False
    # Its weights are exp() of differences of logarithms as large as 45.
    logarithms: bool = False
    label: str = ""  # in the table, if it is not the name


FAMILIES = [
    Family("afmoe", "AfmoeTokenChoiceRouter", "AfmoeConfig", how="batch"),
    Family("aria", "AriaTextTopKRouter", "AriaTextConfig"),
    Family("axk1", "AXK1TopkRouter", "AXK1Config"),
    Family("axk2", "AXK2TopkRouter", "AXK2Config"),
    Family("bailing_hybrid", "BailingHybridTopkRouter", "BailingHybridConfig"),
    Family("beam", "BeamTopKRouter", "BeamConfig"),
    Family("cohere2_moe", "Cohere2MoeTopKRouter", "Cohere2MoeConfig"),
    Family("cohere2_moe", "Cohere2MoeTopKRouter", "Cohere2MoeConfig", label="cohere2_moe, sigmoid",
           config_says={"expert_selection_fn": "sigmoid"}),
    Family("dbrx", "DbrxFFN", "DbrxFFNConfig", how="dbrx"),
    Family("deepseek_ocr2", "DeepseekOcr2TextTopkRouter", "DeepseekOcr2TextConfig", top_k=6),
    Family("deepseek_v2", "DeepseekV2TopkRouter", "DeepseekV2Config", top_k=6),
    Family("deepseek_v2", "DeepseekV2TopkRouter", "DeepseekV2Config", experts=160, top_k=6,
           label="deepseek_v2, groups",
           config_says={"topk_method": "group_limited_greedy", "n_group": 8, "topk_group": 3,
                        "routed_scaling_factor": 16.0}),
    Family("deepseek_v3", "DeepseekV3TopkRouter", "DeepseekV3Config"),
    Family("deepseek_v32", "DeepseekV32TopkRouter", "DeepseekV32Config"),
    Family("deepseek_v4", "DeepseekV4TopKRouter", "DeepseekV4Config"),
    Family("deepseek_v4", "DeepseekV4HashRouter", "DeepseekV4Config", how="hash",
           label="deepseek_v4, hash layers"),
    Family("diffusion_gemma", "DiffusionGemmaTextRouter", "DiffusionGemmaTextConfig",
           experts=128, top_k=8, gain=16),
    Family("dots1", "Dots1TopkRouter", "Dots1Config", experts=128, top_k=6),
    Family("dots3_note", "Dots3NoteTextTopkRouter", "Dots3NoteTextConfig"),
    Family("dots3_note", "Dots3NoteVisionTopKRouter", "Dots3NoteVisionConfig", experts=16,
           preset="dots3_note_vision_encoder", label="dots3_note, vision"),
    Family("ernie4_5_moe", "Ernie4_5_MoeTopKRouter", "Ernie4_5_MoeConfig"),
    Family("ernie4_5_vl_moe", "Ernie4_5_VLMoeMoeTopKRouter", "Ernie4_5_VLMoeTextConfig"),
    Family("exaone_moe", "ExaoneMoeTopkRouter", "ExaoneMoeConfig"),
    Family("flex_olmo", "FlexOlmoTopKRouter", "FlexOlmoConfig"),
    Family("flint", "FlintTopKRouter", "FlintConfig"),
    Family("gemma4", "Gemma4TextRouter", "Gemma4TextConfig", experts=128, top_k=8, gain=16),
    Family("glm4_moe", "Glm4MoeTopkRouter", "Glm4MoeConfig"),
    Family("glm4_moe_lite", "Glm4MoeLiteTopkRouter", "Glm4MoeLiteConfig"),
    Family("glm4v_moe", "Glm4vMoeTextTopkRouter", "Glm4vMoeTextConfig"),
    Family("glm5_next", "Glm5NextTextTopkRouter", "Glm5NextTextConfig"),
    Family("glm_moe_dsa", "GlmMoeDsaTopkRouter", "GlmMoeDsaConfig"),
    Family("gpt_oss", "GptOssTopKRouter", "GptOssConfig"),
    Family("granitemoe", "GraniteMoeTopKRouter", "GraniteMoeConfig"),
    Family("granitemoe_swa", "GraniteMoeSWATopKRouter", "GraniteMoeSWAConfig"),
    Family("granitemoehybrid", "GraniteMoeHybridTopKRouter", "GraniteMoeHybridConfig"),
    Family("granitemoeshared", "GraniteMoeSharedTopKRouter", "GraniteMoeSharedConfig"),
    Family("hunyuan_v1_moe", "HunYuanMoEV1Gate", "HunYuanMoEV1Config", keeps_f32=True),
    Family("hy_v3", "HYV3TopKRouter", "HYV3Config"),
    Family("hy_v4", "HYV4TopkRouter", "HYV4Config"),
    Family("inkling", "InklingTopkRouter", "InklingTextConfig", how="shared", logarithms=True),
    Family("inkling2", "Inkling2TopKRouter", "Inkling2TextConfig", keeps_f32=True),
    Family("jamba", "JambaTopKRouter", "JambaConfig"),
    Family("jetmoe", "JetMoeTopKGating", "JetMoeConfig", how="sorted_pairs"),
    Family("kimi_linear", "KimiLinearTopkRouter", "KimiLinearConfig"),
    Family("kolibri1", "Kolibri1TopKRouter", "Kolibri1Config"),
    Family("laguna", "LagunaTopKRouter", "LagunaConfig"),
    Family("laguna", "LagunaTopKRouter", "LagunaConfig", label="laguna, soft-cap",
           config_says={"moe_router_logit_softcapping": 4.0}),
    Family("lfm2_moe", "Lfm2MoeTopKRouter", "Lfm2MoeConfig"),
    Family("llama4", "Llama4Router", "Llama4TextConfig", how="all_experts"),
    Family("longcat_flash", "LongcatFlashTopkRouter", "LongcatFlashConfig"),
    Family("mellum", "MellumTopKRouter", "MellumConfig"),
    Family("mimo_v2_flash", "MiMoV2FlashTopkRouter", "MiMoV2FlashConfig"),
    Family("minimax", "MiniMaxTopKRouter", "MiniMaxConfig"),
    Family("minimax_m2", "MiniMaxM2TopKRouter", "MiniMaxM2Config"),
    Family("minimax_m3_vl", "MiniMaxM3VLTopKRouter", "MiniMaxM3VLTextConfig"),
    Family("mistral4", "Mistral4TopkRouter", "Mistral4Config"),
    Family("mistral_large4", "MistralLarge4TextTopkRouter", "MistralLarge4TextConfig"),
    Family("mixtral", "MixtralTopKRouter", "MixtralConfig"),
    Family("muse_spark", "MuseSparkTopkRouter", "MuseSparkTextConfig", gain=2.5),
    Family("nemotron_h", "NemotronHTopkRouter", "NemotronHConfig"),
    Family("olmoe", "OlmoeTopKRouter", "OlmoeConfig"),
    Family("openai_privacy_filter", "OpenAIPrivacyFilterTopKRouter", "OpenAIPrivacyFilterConfig"),
    Family("phimoe", "PhimoeTopKRouter", "PhimoeConfig", how="rounds"),
    Family("qwen2_moe", "Qwen2MoeTopKRouter", "Qwen2MoeConfig"),
    Family("qwen3_5_moe", "Qwen3_5MoeTopKRouter", "Qwen3_5MoeTextConfig"),
    Family("qwen3_moe", "Qwen3MoeTopKRouter", "Qwen3MoeConfig"),
    Family("qwen3_next", "Qwen3NextTopKRouter", "Qwen3NextConfig"),
    Family("qwen3_omni_moe", "Qwen3OmniMoeThinkerTextTopKRouter", "Qwen3OmniMoeTextConfig"),
    Family("qwen3_omni_moe", "Qwen3OmniMoeTalkerTextTopKRouter", "Qwen3OmniMoeTalkerTextConfig",
           preset="qwen3_omni_moe_talker_text", label="qwen3_omni_moe, talker"),
    Family("qwen3_vl_moe", "Qwen3VLMoeTextTopKRouter", "Qwen3VLMoeTextConfig"),
    Family("qwen4_exp", "Qwen4ExpTextTopKRouter", "Qwen4ExpTextConfig"),
    Family("solar_open", "SolarOpenTopkRouter", "SolarOpenConfig"),
    Family("step3p7", "Step3p7TopKRouter", "Step3p7TextConfig"),
    Family("unlimited_ocr", "UnlimitedOcrTextTopkRouter", "UnlimitedOcrTextConfig"),
    Family("zaya", "ZayaRouter", "ZayaConfig", how="skip"),
]

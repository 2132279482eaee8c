// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! Tests `Preset`: finds families by name, and applies the config.json of their
//! checkpoints.

use switchyard::*;

#[test]
fn presets_by_name() {
    let preset = Preset::find("deepseek_v3").unwrap();
    assert_eq!((preset.family, preset.num_experts, preset.top_k), ("deepseek_v3", 256, 8));
    assert!(preset.correction_bias && !preset.expert_scale && preset.same_as.is_none());
    let route = preset.route;
    assert_eq!((route.score, route.divisor), (Score::Sigmoid, Divisor::SumPlusEps));
    assert_eq!((route.num_expert_group, route.topk_group), (8, 4));
    assert_eq!((route.eps, route.routed_scaling_factor), (1e-20, 2.5));
    let families: Vec<&str> = Preset::families().collect();
    assert!(families.len() > 70);
    for family in families {
        assert_eq!(Preset::find(family).unwrap().family, family);
    }
    for unknown in ["llama", "mix\0tral"] {
        assert_eq!(Preset::find(unknown).unwrap_err().code, Code::InvalidArgument);
    }
}

const QWEN3: &str = r#"{
  "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_act": "silu",
  "num_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": true, "rms_norm_eps": 1e-05,
  "rope_scaling": null, "eos_token_id": [1, 2], "quantization_config": {"num_experts": "no"}
}"#;

fn message<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    let error = result.unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    error.message
}

#[test]
fn configurations_are_applied() {
    let preset = Preset::from_json(QWEN3).unwrap();
    assert_eq!((preset.family, preset.num_experts, preset.top_k), ("qwen3_moe", 128, 8));
    assert!(preset.route.renormalize && !preset.route.needs_config);
    assert_eq!((preset.activate.activation, preset.combine.eps), (Activation::Silu, 1e-5));
    assert!(preset.form.has_residual && preset.form.num_shared_experts == 0);
    let unconfigured = Preset::find("qwen3_moe").unwrap();
    assert!(unconfigured.route.needs_config && !unconfigured.route.renormalize);

    // The configuration of QWEN3, set field by field, gives the same preset. Then one
    // field is changed.
    let config = ModelConfig {
        num_experts: Some(128),
        num_experts_per_tok: Some(8),
        norm_topk_prob: Some(true),
        rms_norm_eps: Some(1e-5),
        hidden_act: Some("silu".into()),
        ..Default::default()
    };
    assert_eq!(ModelConfig::from_json(QWEN3).unwrap(), config);
    assert_eq!(Preset::configured("qwen3_moe", &config).unwrap(), preset);
    let other = ModelConfig { norm_topk_prob: Some(false), ..config.clone() };
    assert!(!Preset::configured("qwen3_moe", &other).unwrap().route.renormalize);

    // The config.json of a model with images has the text model's fields in text_config.
    let nested =
        format!(r#"{{"model_type": "images", "num_experts": 3, "text_config": {}}}"#, QWEN3);
    assert_eq!(Preset::from_json(&nested).unwrap(), preset);
    assert_eq!(ModelConfig::from_json(&nested).unwrap(), config);
    let unknown = QWEN3.replace("qwen3_moe", "qwen99");
    assert_eq!(ModelConfig::from_json(&unknown).unwrap(), config);
}

#[test]
fn shared_experts_and_activations_come_with_the_family() {
    // These fields are from the configurations of GLM-4.5-Air and gpt-oss.
    let glm = r#"{"model_type": "glm4_moe", "n_routed_experts": 128, "n_shared_experts": 1,
        "num_experts_per_tok": 8, "n_group": 1, "topk_group": 1, "norm_topk_prob": true,
        "routed_scaling_factor": 1.0, "hidden_act": "silu", "rms_norm_eps": 1e-05}"#;
    let preset = Preset::from_json(glm).unwrap();
    assert!(preset.correction_bias && preset.route.needs_correction_bias);
    assert_eq!((preset.form.num_shared_experts, preset.num_experts), (1, 128));
    assert_eq!(preset.form.shared_gate, SharedGate::None);
    let gpt_oss = r#"{"model_type": "gpt_oss", "num_local_experts": 32, "swiglu_limit": 7.0,
        "num_experts_per_tok": 4, "hidden_act": "silu", "rms_norm_eps": 1e-05}"#;
    let preset = Preset::from_json(gpt_oss).unwrap();
    assert_eq!((preset.activate.activation, preset.activate.limit), (Activation::SwigluOai, 7.0));
    assert!(preset.form.has_expert_biases);
}

// The texts are like the config.json of DBRX, MiMo-V2-Flash, Gemma 4 and Qwen3-Omni.
#[test]
fn nulls_lists_and_objects_are_read() {
    let dbrx = r#"{"model_type": "dbrx", "ffn_config": {"moe_num_experts": 16, "moe_top_k": 4,
        "moe_normalize_expert_weights": 1, "ffn_act_fn": {"name": "silu"}}}"#;
    let preset = Preset::from_json(dbrx).unwrap();
    assert_eq!((preset.num_experts, preset.top_k, preset.route.renormalize), (16, 4, true));
    let preset = Preset::from_json(&dbrx.replace(": 1,", ": null,")).unwrap();
    assert!(!preset.route.renormalize);

    let mimo = r#"{"model_type": "mimo_v2_flash", "n_routed_experts": 256, "norm_topk_prob": true,
        "num_experts_per_tok": [8, 8], "n_group": 1, "topk_group": 1, "n_shared_experts": null,
        "routed_scaling_factor": null, "layernorm_epsilon": 1e-05, "time_step_limit": [0.0, Infinity],
        "moe_layer_freq": [0, 1]}"#;
    let preset = Preset::from_json(mimo).unwrap();
    assert_eq!((preset.num_experts, preset.top_k, preset.combine.eps), (256, 8, 1e-5));
    assert_eq!(preset.route.routed_scaling_factor, 1.0);

    // In Gemma 4's file, the object around text_config has a model_type, too. In
    // Qwen3-Omni's file, the text model is the object two levels down.
    let gemma = r#"{"model_type": "gemma4", "text_config": {"model_type": "gemma4_text",
        "num_experts": 128, "top_k_experts": 8, "rms_norm_eps": 1e-06}}"#;
    let preset = Preset::from_json(gemma).unwrap();
    assert_eq!((preset.family, preset.num_experts, preset.top_k), ("gemma4", 128, 8));
    let omni = format!(
        r#"{{"model_type": "qwen3_omni_moe", "thinker_config": {{"text_config": {}}}}}"#,
        QWEN3.replace("qwen3_moe", "qwen3_omni_moe_text")
    );
    let preset = Preset::from_json(&omni).unwrap();
    assert_eq!((preset.family, preset.num_experts), ("qwen3_omni_moe", 128));
}

#[test]
fn wrong_configurations_name_the_field() {
    const COUNT: &str = "SetField: config: num_experts is not a whole number from 0 to 2^31 - 1";
    let spoilt = |from: &str, to: &str| {
        assert!(QWEN3.contains(from));
        message(Preset::from_json(&QWEN3.replace(from, to)))
    };
    for (from, to, wanted) in [
        ("norm_topk_prob", "x", "ApplyConfig: config: norm_topk_prob is missing"),
        (": true", ": null", "ApplyConfig: config: norm_topk_prob is missing"),
        (": 128", ": 12.5", COUNT),
        (": 128", ": -1", COUNT),
        (": 128", ": \"128\"", COUNT),
        (": 128", ": [128, 64]", COUNT),
        (
            ": 128",
            ": 128, \"n_routed_experts\": 64",
            "SetField: config: n_routed_experts differs from num_experts, and both are names of one field",
        ),
        (": 128", ": 7", "ApplyConfig: config: num_experts_per_tok is above num_experts"),
        ("1e-05", "NaN", "SetField: config: rms_norm_eps is not a finite number"),
        ("1e-05", "Infinity", "SetField: config: rms_norm_eps is not a finite number"),
        ("silu", "si\\u0000lu", "ModelConfig: a text has a zero byte"),
        ("\"qwen3_moe\"", "\"llama\"", "ApplyConfig: preset: its family is not in Presets()"),
        ("\"qwen3_moe\"", "1", "ModelConfig: model_type is missing"),
        ("model_type", "type", "ModelConfig: model_type is missing"),
        ("null", "nil", "ModelConfig: the text is malformed JSON"),
    ] {
        assert_eq!(spoilt(from, to), wanted, "{} {}", from, to);
    }
    assert_eq!(
        message(ModelConfig::from_json("[1]")),
        "ModelConfig: the text is not a JSON object"
    );
    let config = ModelConfig { hidden_act: Some("a\0b".into()), ..Default::default() };
    let result = Preset::configured("qwen3_moe", &config);
    assert_eq!(message(result), "ModelConfig: a text has a zero byte");
    let result = Preset::configured("qwen3\0moe", &ModelConfig::default());
    assert_eq!(message(result), "ApplyConfig: preset: family has a zero byte");
    // A name with a zero byte is unknown.
    assert!(ModelConfig::from_json(r#"{"num_experts\u0000": "x"}"#).is_ok());
}

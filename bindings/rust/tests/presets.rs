// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! Families by name, with the config.json of their checkpoints.

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

    // The same field by field, and one of them otherwise.
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

    // A model with images counts by its text's part.
    let nested =
        format!(r#"{{"model_type": "images", "num_experts": 3, "text_config": {}}}"#, QWEN3);
    assert_eq!(Preset::from_json(&nested).unwrap(), preset);
    assert_eq!(ModelConfig::from_json(&nested).unwrap(), config);
    let unknown = QWEN3.replace("qwen3_moe", "qwen99");
    assert_eq!(ModelConfig::from_json(&unknown).unwrap(), config);
}

#[test]
fn shared_experts_and_activations_come_with_the_family() {
    // From the configuration of GLM-4.5-Air, and gpt-oss.
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

#[test]
fn wrong_configurations_name_the_field() {
    let spoilt = |from: &str, to: &str| {
        assert!(QWEN3.contains(from));
        message(Preset::from_json(&QWEN3.replace(from, to)))
    };
    for (from, to, wanted) in [
        ("norm_topk_prob", "x", "ApplyConfig: config: norm_topk_prob is missing"),
        (": true", ": null", "ApplyConfig: config: norm_topk_prob is missing"),
        (": 128", ": 12.5", "ModelConfig: num_experts has no such value"),
        (": 128", ": -1", "ModelConfig: num_experts has no such value"),
        (": 128", ": \"128\"", "ModelConfig: num_experts has no such value"),
        (": 128", ": 7", "ApplyConfig: config: num_experts_per_tok is above num_experts"),
        ("1e-05", "NaN", "ModelConfig: rms_norm_eps has no such value"),
        ("1e-05", "Infinity", "ModelConfig: rms_norm_eps has no such value"),
        ("silu", "si\\u0000lu", "ModelConfig: a text has a zero byte"),
        ("\"qwen3_moe\"", "\"llama\"", "ApplyConfig: preset: has no family of Presets()"),
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
    // A name with a zero byte is no field's.
    assert!(ModelConfig::from_json(r#"{"num_experts\u0000": "x"}"#).is_ok());
}

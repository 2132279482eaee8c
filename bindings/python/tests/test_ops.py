# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests the operators without models."""

import threading

import pytest
import torch

import switchyard

T, E, K, H, I = 9, 6, 2, 32, 24


def arguments(dtype=torch.float32, tokens=T, **replaced):
    weights, ids = torch.randn(tokens, E).softmax(-1).topk(K)
    named = {"hidden": torch.randn(tokens, H, dtype=dtype), "topk_ids": ids,
             "topk_weights": weights, "up": torch.randn(E, 2 * I, H, dtype=dtype) / 6,
             "down": torch.randn(E, H, I, dtype=dtype) / 5}
    return named | replaced


def expected(hidden, topk_ids, topk_weights, up, down, up_bias=None, down_bias=None,
             transposed=False):
    """Computes SiLU experts in double precision, one pair after the other."""
    out = torch.zeros(len(hidden), down.shape[2 if transposed else 1], dtype=torch.float64)
    for t in range(len(hidden)):
        for e, w in zip(topk_ids[t].tolist(), topk_weights[t].double()):
            if not 0 <= e < len(up):
                continue
            first, second = up[e].double(), down[e].double()
            if transposed:
                first, second = first.T, second.T
            both = first @ hidden[t].double()
            both = both + up_bias[e].double() if up_bias is not None else both
            gate, value = both.chunk(2)
            row = second @ (torch.nn.functional.silu(gate) * value)
            out[t] += w * (row + down_bias[e].double() if down_bias is not None else row)
    return out


def check(got, want, eps=2e-6):
    assert got.shape == want.shape
    torch.testing.assert_close(got.double(), want, rtol=0, atol=eps * 8 * want.abs().max().item())


@pytest.mark.parametrize("tokens", [1, 2, 9, 300])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_experts(tokens, threads):
    torch.set_num_threads(threads)
    named = arguments(tokens=tokens)
    check(switchyard.experts(**named), expected(**named))


@pytest.mark.parametrize("tokens", [1, 9])
def test_biases_and_transposed_weights(tokens):
    named = arguments(tokens=tokens, up_bias=torch.randn(E, 2 * I), down_bias=torch.randn(E, H))
    check(switchyard.experts(**named), expected(**named))
    named["up"] = named["up"].transpose(1, 2).contiguous()
    named["down"] = named["down"].transpose(1, 2).contiguous()
    check(switchyard.experts(**named, transposed=True), expected(**named, transposed=True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rows_of_half_precision(dtype):
    """Checks that a bias is added before rounding, for one row of an expert and for many rows,
    which use different kernels."""
    for tokens in (1, 2, 9, 70):
        named = arguments(dtype, tokens, up_bias=torch.randn(E, 2 * I).to(dtype),
                          down_bias=torch.randn(E, H).to(dtype))
        check(switchyard.experts(**named), expected(**named), torch.finfo(dtype).eps / 2)
        wide = torch.randn(2 * E, H, I)[::2].to(dtype).copy_(named["down"])
        check(switchyard.experts(**(named | {"down": wide})), expected(**named),
              torch.finfo(dtype).eps / 2)


def test_layouts_and_activations_are_what_they_are_called():
    gate, up = torch.randn(5, I), torch.randn(5, I)
    rows = {"concatenated": torch.cat([gate, up], 1),
            "interleaved": torch.stack([gate, up], 2).reshape(5, -1)}
    F = torch.nn.functional
    functions = {"silu": F.silu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
                 "relu": F.relu, "relu2": lambda x: F.relu(x).square(), "identity": lambda x: x}
    for name, function in functions.items():
        for layout, row in rows.items():
            got = torch.ops.switchyard.activate(row, f"activation={name} layout={layout}")
            torch.testing.assert_close(got, function(gate) * up)
        torch.testing.assert_close(torch.ops.switchyard.activate(
            gate, f"activation={name} layout=ungated"), function(gate))
    got = torch.ops.switchyard.activate(rows["concatenated"],
                                        "activation=swiglu_oai alpha=1.3 limit=0.5")
    g, u = gate.clamp(max=0.5), up.clamp(-0.5, 0.5)
    torch.testing.assert_close(got, (u + 1) * g * torch.sigmoid(1.3 * g))
    got = torch.ops.switchyard.activate(rows["concatenated"],
                                        "activation=situ beta=2.0 linear_beta=3.0")
    torch.testing.assert_close(
        got, 2 * torch.tanh(gate / 2) * torch.sigmoid(gate) * 3 * torch.tanh(up / 3))
    got = torch.ops.switchyard.activate(
        rows["concatenated"], switchyard.options_text(limit=0.2, limit_after=True))
    torch.testing.assert_close(got, F.silu(gate).clamp(max=0.2) * up.clamp(-0.2, 0.2))


@pytest.mark.parametrize("tokens", [1, 9])
def test_whatever_lies_in_memory(tokens):
    named = arguments(tokens=tokens)
    want = expected(**named)
    wide = {"hidden": torch.randn(tokens, 3 * H)[:, H:2 * H].copy_(named["hidden"]),
            "topk_ids": named["topk_ids"].T.contiguous().T,
            "topk_weights": torch.randn(2 * tokens, K)[::2].copy_(named["topk_weights"]),
            "up": named["up"].transpose(1, 2).contiguous().transpose(1, 2),
            "down": torch.randn(E, H, 2 * I)[:, :, ::2].copy_(named["down"])}
    for name, tensor in wide.items():
        check(switchyard.experts(**(named | {name: tensor})), want)
    every_other = torch.randn(tokens, 2 * H)[:, ::2].copy_(named["hidden"])
    check(switchyard.experts(**(named | {"hidden": every_other})), want)
    columns = named["hidden"].T.contiguous().T
    check(switchyard.experts(**(named | {"hidden": columns})), want)
    check(switchyard.experts(**(named | {"hidden": columns[:, ::1].expand(tokens, H)})), want)
    check(switchyard.experts(**(named | {"topk_ids": named["topk_ids"].int()})), want)


def test_one_row_for_all_tokens():
    named = arguments()
    named["hidden"] = named["hidden"][:1].expand(T, H)
    check(switchyard.experts(**named), expected(**named))


def test_other_types_than_the_weights():
    named = arguments()
    want = expected(**(named | {"hidden": named["hidden"].bfloat16()}))
    for tokens in (1, T):
        some = {n: t[:tokens] if n[0] in "ht" else t for n, t in named.items()}
        got = switchyard.experts(**(some | {"hidden": some["hidden"].bfloat16()}))
        assert got.dtype == torch.bfloat16
        check(got, want[:tokens], eps=2 ** -8)


def test_empty():
    named = arguments(tokens=0)
    assert switchyard.experts(**named).shape == (0, H)
    named = arguments()
    named |= {"topk_ids": named["topk_ids"][:, :0], "topk_weights": named["topk_weights"][:, :0]}
    assert torch.equal(switchyard.experts(**named), torch.zeros(T, H))


@pytest.mark.parametrize("tokens", [1, 9])
def test_ids_of_other_ranks(tokens):
    named = arguments(tokens=tokens)
    named["topk_ids"][0, 1] = E
    # The weights of dropped ids are ignored, even if they are NaN.
    named["topk_weights"][0, 1] = float("nan")
    check(switchyard.experts(**named, allow_dropped=True), expected(**named))
    for wrong in (E, -1, 2 ** 40):
        named["topk_ids"][0, 1] = wrong
        with pytest.raises(RuntimeError, match=r"experts: topk_ids: an id outside"):
            switchyard.experts(**named)
    named["topk_ids"][:] = E
    assert torch.equal(switchyard.experts(**named, allow_dropped=True), torch.zeros(tokens, H))


def test_inference_mode_and_no_grad_give_the_same():
    named = arguments()
    with torch.inference_mode():
        inside = switchyard.experts(**named)
    named["up"].requires_grad_()
    with torch.no_grad():
        assert torch.equal(inside, switchyard.experts(**named))


def test_gradients_are_refused():
    named = arguments()
    for name in ("hidden", "topk_weights", "up", "down"):
        wanted = named[name].clone().requires_grad_()
        with pytest.raises(RuntimeError, match=r"experts: autograd: has no derivative"):
            switchyard.experts(**(named | {name: wanted}))
    with pytest.raises(RuntimeError, match=r"route: autograd: has no derivative"):
        switchyard.route(torch.randn(3, 8).requires_grad_(), "qwen3_moe", 2)
    with pytest.raises(RuntimeError, match=r"activate: autograd: has no derivative"):
        torch.ops.switchyard.activate(torch.randn(3, 8).requires_grad_())


def test_derivatives_in_forward_mode_are_refused():
    named = arguments()
    for name in ("hidden", "topk_weights", "up", "down"):
        with pytest.raises(RuntimeError, match=r"experts: autograd: has no derivative"):
            torch.func.jvp(lambda x: switchyard.experts(**(named | {name: x})), (named[name],),
                           (torch.ones_like(named[name]),))
    logits = torch.randn(3, 8)
    for op, call in (("route", lambda x: switchyard.route(x, "qwen3_moe", 2)[1]),
                     ("activate", torch.ops.switchyard.activate)):
        with pytest.raises(RuntimeError, match=f"{op}: autograd: has no derivative"):
            torch.func.jvp(call, (logits,), (logits,))
    # This does not raise, because `logits` is a constant here and needs no derivative.
    torch.func.jvp(lambda x: x * torch.ops.switchyard.activate(logits).sum(), (logits,), (logits,))


@pytest.mark.parametrize("name", ["topk_ids", "topk_weights", "up", "down", "up_bias", "down_bias",
                                  "gate"])
def test_an_argument_without_memory_is_named(name):
    named = arguments(up_bias=torch.randn(E, 2 * I), down_bias=torch.randn(E, H))
    if name == "gate":
        named |= {"up": torch.randn(E, I, H), "gate": torch.randn(E, I, H), "layout": "split"}
        del named["up_bias"]
    with pytest.raises(RuntimeError, match=f"switchyard::experts: {name}: on meta, where the "
                                           "first argument is on cpu"):
        switchyard.experts(**(named | {name: named[name].to("meta")}))
    assert switchyard.experts(**{n: t.to("meta") if isinstance(t, torch.Tensor) else t
                                 for n, t in named.items()}).device.type == "meta"


def test_an_argument_of_route_without_memory_is_named():
    bias = torch.zeros(8, device="meta")
    for name in ("correction_bias", "expert_scale"):
        with pytest.raises(RuntimeError, match=f"switchyard::route: {name}: on meta"):
            switchyard.route(torch.randn(3, 8), "qwen3_moe", 2, **{name: bias})
    with pytest.raises(RuntimeError, match="switchyard::experts: topk_ids: on cpu, where the first"):
        switchyard.experts(**(arguments() | {"hidden": torch.randn(T, H, device="meta")}))


@pytest.mark.parametrize("tokens", [1, 9])
@pytest.mark.parametrize("biased", [False, True])
def test_a_gate_of_its_own(tokens, biased):
    named = arguments(tokens=tokens)
    if biased:
        named["down_bias"] = torch.randn(E, H)
    want = expected(**named)
    gate, up = named["up"].chunk(2, dim=1)
    check(switchyard.experts(**(named | {"up": up, "gate": gate, "layout": "split"})), want)
    for wrong in (gate[:, 1:], gate[1:], gate[:, :, 1:], gate.bfloat16()):
        with pytest.raises(RuntimeError, match="experts: gate: not of the shape and dtype of up"):
            switchyard.experts(**(named | {"up": up, "gate": wrong, "layout": "split"}))
    with pytest.raises(RuntimeError, match="experts: gate: missing"):
        switchyard.experts(**(named | {"up": up, "layout": "split"}))


def test_activations_of_minus_infinity_are_limits():
    """Checks README's promise about -inf. torch gives NaN here, from -inf * 0."""
    rows = torch.tensor([[float("-inf"), 1.0]])
    for activation, torchs in (("silu", torch.nn.functional.silu), ("gelu", torch.nn.functional.gelu)):
        assert torch.ops.switchyard.activate(rows, f"activation={activation}")[0, 0] == 0
        assert torchs(rows[:, :1]).isnan()


WRONG = [
    ("hidden", torch.randn(T, H, 1), "hidden: not a tensor of two dimensions"),
    ("hidden", torch.zeros(T, H, dtype=torch.int32), "hidden: not float32"),
    ("hidden", torch.zeros(T, H, dtype=torch.float64), "hidden: a dtype"),
    ("hidden", torch.randn(T, H + 1), "up: not .experts, columns, hidden"),
    ("topk_ids", torch.zeros(T, K), "topk_ids: not int64 or int32"),
    *((name, None, f"{name}: None, and not a tensor")
      for name in ("hidden", "topk_ids", "topk_weights", "up", "down")),
    ("topk_ids", torch.zeros(T + 1, K, dtype=torch.int64), "topk_ids: not a row for each"),
    ("topk_ids", torch.zeros(T, dtype=torch.int64), "topk_ids: not a tensor of two"),
    ("topk_weights", torch.zeros(T, K + 1), "topk_weights: not of the shape"),
    ("topk_weights", torch.zeros(T, K, dtype=torch.int64), "topk_weights: not float32"),
    ("up", torch.randn(2 * I, H), "up: not a tensor of three dimensions"),
    ("up", torch.randn(0, 2 * I, H), "up: no experts"),
    ("up", torch.zeros(E, 2 * I, H, dtype=torch.int32), "up: not float32"),
    ("up", torch.randn(E, 2 * I + 2, H), "down: not of half of the columns"),
    ("down", torch.randn(E + 1, H, I), "down: not as many experts"),
    ("down", torch.randn(E, H, I).half(), "down: not of the dtype of up"),
    ("down", torch.randn(E, H + 1, I), "down: not of the columns of hidden"),
    ("up_bias", torch.randn(E, I), "up_bias: not .experts, columns"),
    ("up_bias", torch.randn(E, 2 * I).half(), "up_bias: not of the dtype"),
    ("down_bias", torch.randn(E + 1, H), "down_bias: not .experts, columns"),
    ("activation", "swish", "options: 'activation=swish': .*needs a number or silu"),
    ("layout", "halves", "options: 'layout=halves': "),
    ("layout", "split", "down: not of the columns of up"),
    ("gate", torch.randn(E, I, H), "gate: given, and the layout is not 'split'"),
    ("layout", "ungated", "down: not of the columns of up"),
    ("limit", -1.0, "limit"),
    ("limits", 1.0, "options: 'limits=1.0': .*did you mean activate.limit"),
    ("renormalize", 1, "options: 'renormalize=1': SetOption: name: no option has this name"),
    ("alpha", float("nan"), "alpha"),
]


@pytest.mark.parametrize("name, value, message", WRONG)
def test_a_wrong_argument_is_named(name, value, message):
    with pytest.raises(RuntimeError, match=f"switchyard::experts: .*{message}"):
        switchyard.experts(**arguments(**{name: value}))


@pytest.mark.parametrize("change, message", [
    ({"preset": "qwen"}, "preset: unknown: 'qwen'"),
    ({"top_k": 0}, "top_k: not in"),
    ({"top_k": 9}, "top_k: not in"),
    ({"logits": torch.zeros(3, 8, dtype=torch.int64)}, "logits: not float32"),
    ({"logits": torch.zeros(8)}, "logits: not a tensor of two dimensions"),
    ({"correction_bias": torch.zeros(7)}, "correction_bias"),
    ({"expert_scale": torch.zeros(7)}, "expert_scale"),
    ({"options": "renormalise=1"}, "options: 'renormalise=1': .*did you mean route.renormalize"),
    ({"options": "renormalize"}, "options: not name=value: 'renormalize'"),
    ({"options": "eps=x"}, "options: 'eps=x': SetOption: value"),
    ({"options": "score=-1"}, "options: 'score=-1': SetOption: value"),
    ({"options": "score=77"}, "score"),
    ({"dtype": torch.float64}, "dtype: not float32"),
])
def test_a_wrong_argument_of_route_is_named(change, message):
    named = {"logits": torch.randn(3, 8), "preset": "qwen3_moe", "top_k": 2} | change
    with pytest.raises(RuntimeError, match=f"switchyard::route: .*{message}"):
        switchyard.route(**named)


@pytest.mark.parametrize("change, message", [
    ({"up": torch.randn(3, 7)}, "up: an odd number"),
    ({"up": torch.randn(8)}, "up: not a tensor of two"),
    ({"up": torch.zeros(3, 8, dtype=torch.int32)}, "up: not float32"),
    ({"options": "activation=tanh"}, "options: 'activation=tanh'"),
    ({"options": "layout=halves"}, "options: 'layout=halves'"),
    ({"options": "layout=split"}, "layout: 'split', and there is no second matrix"),
])
def test_a_wrong_argument_of_activate_is_named(change, message):
    with pytest.raises(RuntimeError, match=f"switchyard::activate: {message}"):
        torch.ops.switchyard.activate(**({"up": torch.randn(3, 8)} | change))


def test_route_is_the_softmax_of_the_best():
    logits = torch.randn(20, 16)
    want, order = logits.softmax(-1).topk(4)
    config = {"num_experts": 16, "num_experts_per_tok": 4, "rms_norm_eps": 1e-6}
    for renormalize in (False, True):
        preset = switchyard.preset("qwen3_moe", config | {"norm_topk_prob": renormalize})
        assert (preset.num_experts, preset.top_k) == (16, 4)
        ids, weights, rest = preset.route(logits)
        assert torch.equal(ids, order) and rest.shape == (0, 1)
        torch.testing.assert_close(weights,
                                   want / want.sum(1, keepdim=True) if renormalize else want)
    assert preset.route(logits, dtype=torch.bfloat16)[1].dtype == torch.bfloat16
    bias = torch.zeros(16)
    bias[5] = 9
    ids = switchyard.route(logits, "deepseek_v3", 4, bias,
                           options="num_expert_group=1 topk_group=1 needs_config=0")[0]
    assert (ids == 5).any(1).all()
    assert len(switchyard.presets()) > 60


@pytest.mark.parametrize("change, message", [
    ({"num_experts": "16"}, "num_experts is not a whole number"),
    ({"n_routed_experts": 8}, "n_routed_experts differs from num_experts"),
    ({"num_experts_per_tok": [4, 2]}, "num_experts_per_tok is not a whole number"),
    ({"rms_norm_eps": float("nan")}, "rms_norm_eps is not a finite number"),
    ({"norm_topk_prob": None}, "norm_topk_prob is missing"),
    ({"scoring_func": "sigmoid"}, "scoring_func is not the score of this family"),
])
def test_a_wrong_configuration_names_the_key(change, message):
    config = {"num_experts": 16, "num_experts_per_tok": 4, "norm_topk_prob": True,
              "rms_norm_eps": 1e-6}
    with pytest.raises(RuntimeError, match=f"switchyard::preset: config: .*{message}"):
        switchyard.preset("qwen3_moe", config | change)


def test_nulls_lists_and_objects_of_a_configuration_are_read():
    config = {"num_experts": 16, "num_experts_per_tok": [4, 4], "norm_topk_prob": True,
              "rms_norm_eps": 1e-6, "time_step_limit": [0.0, float("inf")], "a=b": 3, "c\nd": 1}
    preset = switchyard.preset("qwen3_moe", config)
    assert (preset.num_experts, preset.top_k) == (16, 4)
    omni = switchyard.preset("qwen3_omni_moe", {"num_experts": 3, "thinker_config": {
        "text_config": config}})
    assert omni.num_experts == 16
    dbrx = {"moe_num_experts": 16, "moe_top_k": 4, "ffn_act_fn": {"name": "silu"}}
    for value, renormalize in ((1, 1), (None, 0)):
        ffn = dbrx | {"moe_normalize_expert_weights": value}
        options = switchyard.preset("dbrx", {"ffn_config": ffn}).options
        assert f"renormalize={renormalize}" in options


def test_a_preset_needs_its_configuration(tmp_path):
    from transformers import DeepseekV3Config, LlavaConfig, Qwen3MoeConfig
    logits = torch.randn(20, 16)
    with pytest.raises(RuntimeError, match="route: library: RouteTopK: options: needs_config"):
        switchyard.route(logits, "qwen3_moe", 4)
    with pytest.raises(RuntimeError, match=r"is not in \[0, 1\]: got 1.5, needs 0 to 1"):
        switchyard.route(logits, "qwen3_moe", 4, options="needs_config=0 clamp=1.5")
    with pytest.raises(RuntimeError, match="switchyard::preset: config: .*norm_topk_prob"):
        switchyard.preset("qwen3_moe", {"num_experts": 16, "num_experts_per_tok": 4})
    with pytest.raises(RuntimeError, match="preset: family: unknown: 'qwen'"):
        switchyard.preset("qwen", {})
    with pytest.raises(RuntimeError, match="preset: family: .*did you mean qwen3_moe"):
        switchyard.preset("qwen3moe", {})
    with pytest.raises(RuntimeError, match="route: preset: .*did you mean qwen3_moe"):
        switchyard.route(logits, "qwen3moe", 4)
    with pytest.raises(TypeError, match="preset: family: not a name: 3"):
        switchyard.preset(3, {})
    with pytest.raises(TypeError, match="preset: config: not a configuration .*: int"):
        switchyard.preset("qwen3_moe", 7)
    with pytest.raises(RuntimeError, match="preset: config: .*num_experts"):
        switchyard.preset("qwen3_moe", {"num_experts": 1.5})
    said = Qwen3MoeConfig(num_experts=16, num_experts_per_tok=4, norm_topk_prob=True)
    said.save_pretrained(tmp_path)
    presets = [switchyard.preset("qwen3_moe", config) for config in (
        said, tmp_path / "config.json", str(tmp_path / "config.json"), said.to_dict(),
        LlavaConfig(text_config=said))]
    assert len(set(presets)) == 1 and "renormalize=1" in presets[0].options
    assert torch.allclose(presets[0].route(logits)[1].sum(1), torch.ones(20))
    deepseek = switchyard.preset("deepseek_v3", DeepseekV3Config(
        n_routed_experts=16, num_experts_per_tok=4, n_group=4, topk_group=2))
    with pytest.raises(RuntimeError, match="correction_bias: not given"):
        deepseek.route(logits)
    assert deepseek.route(logits, torch.zeros(16))[0].shape == (20, 4)


def test_what_the_compiler_is_told():
    named = arguments()
    tests = ("test_schema", "test_faketensor")
    torch.library.opcheck(torch.ops.switchyard.experts, tuple(named.values()), test_utils=tests)
    torch.library.opcheck(switchyard.route, (torch.randn(3, 8), "qwen3_moe", 2),
                          {"options": "needs_config=0"}, test_utils=tests)
    torch.library.opcheck(switchyard.route, (torch.randn(3, 8), "longcat_flash", 2),
                          {"options": "num_zero_experts=2 needs_config=0 needs_correction_bias=0"}, test_utils=tests)
    torch.library.opcheck(torch.ops.switchyard.activate, (torch.randn(3, 8),), test_utils=tests)


def test_operations_are_counted():
    from torch.utils.flop_counter import FlopCounterMode
    named = arguments()
    split = named | {"up": named["up"][:, :I], "gate": named["up"][:, I:], "layout": "split"}
    for given in (named, split):
        with FlopCounterMode(display=False) as counter:
            switchyard.experts(**given)
            torch.ops.switchyard.activate(torch.randn(3, 8))
        assert counter.get_total_flops() == 6 * T * K * H * I


def test_several_threads_at_once():
    cases = [arguments(tokens=tokens) for tokens in (1, 3, 40, 100)]
    wants = [switchyard.experts(**named) for named in cases]
    wrong = []

    def work(named, want):
        for _ in range(50):
            if not torch.equal(switchyard.experts(**named), want):
                wrong.append(len(want))

    threads = [threading.Thread(target=work, args=pair) for pair in zip(cases * 2, wants * 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_workspace_is_bounded():
    before = switchyard.workspace_limit()
    try:
        named = arguments(tokens=300)
        want = switchyard.experts(**named)
        for limit in (0, 4 << 20):
            assert switchyard.workspace_limit(limit) == limit == switchyard.workspace_limit()
            assert torch.equal(switchyard.experts(**named), want)
        with pytest.raises(RuntimeError, match="workspace_limit: bytes: below zero"):
            switchyard.workspace_limit(-1)
    finally:
        switchyard.workspace_limit(before)

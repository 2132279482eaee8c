# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests records of routing: made with one batch, replayed with another."""

import copy
import dataclasses
import json

import pytest
import safetensors
import safetensors.torch
import torch
from test_models import make
from test_patch import FAMILIES, LEFT_ALONE, _router

import switchyard
import switchyard.transformers
from switchyard import _records, _routers, _sessions
from switchyard.transformers import load_record, record, replay, save_record

TOKENS, TOP_K = 11, 3


def _ints(ids):
    return ids.to(torch.int64)


def _patched(family="qwen3_moe", dtype=torch.float32, **sizes):
    model = make(family, dtype, **sizes)
    assert switchyard.transformers.patch(model).routers
    return model


class Heard:
    """Keeps the results of a model's routers."""

    def __init__(self, model):
        self.results = []
        for module in model.modules():
            if switchyard.transformers._is_replaced(module, switchyard.transformers._routed):
                module.register_forward_hook(lambda m, a, out: self.results.append(out))

    def take(self):
        taken, self.results = self.results, []
        return taken


@pytest.mark.parametrize("experts, dtype", [
    (8, torch.uint8), (255, torch.uint8), (256, torch.uint16), (300, torch.int32),
    (300, torch.int64)], ids=str)
@pytest.mark.parametrize("preset, options", [
    ("qwen3_moe", "needs_config=0"),
    ("deepseek_v3", "needs_config=0 num_expert_group=4 topk_group=2 select_on_rounded_score=1"),
    ("longcat_flash", "needs_config=0 num_zero_experts=2")])
def test_operators(experts, dtype, preset, options):
    if "group" in options:
        experts -= experts % 4
    logits, bias = torch.randn(2, TOKENS, experts), torch.randn(experts) * 0.05
    mask = torch.ones(TOKENS, dtype=torch.bool)
    mask[4] = False
    named = {"options": options}
    if preset == "qwen3_moe":
        bias = None
    layers = torch.full((TOKENS, 2, TOP_K + 1), 9, dtype=dtype)
    made = layers[:, :, :TOP_K]
    kept = [switchyard.record_route(logits[i], preset, TOP_K, made[:, i], bias, token_mask=mask,
                                    **named) for i in range(2)]
    assert (_ints(layers)[:, :, TOP_K] == 9).all()
    marked = (_records.signed(made) == -1 if dtype in (torch.uint8, torch.uint16) else made == -1)
    assert marked[4].all() and not marked[mask].any()
    order = torch.randperm(TOKENS)
    for i, (ids, weights, rest) in enumerate(kept):
        assert torch.equal(switchyard.route(logits[i], preset, TOP_K, bias, token_mask=mask,
                                            **named)[1], weights)
        own = ids >= 0  # the id of a zero expert is -1 here, but in the record it is its index
        assert torch.equal(_ints(made[:, i])[own], ids[own])
        signed = made.view(torch.int16) if dtype == torch.uint16 else made
        given = signed[order, i].view(dtype)
        again = switchyard.route(logits[i][order], preset, TOP_K, bias, given_ids=given, **named)
        for one, other in zip(again, (ids, weights, rest)):
            assert torch.equal(one, other[order] if len(other) else other)


def test_its_schema_is_right():
    record = torch.zeros(3, 2, dtype=torch.uint8)
    torch.library.opcheck(switchyard.record_route, (torch.randn(3, 8), "qwen3_moe", 2, record),
                          {"options": "needs_config=0"},
                          test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("change, message", [
    ({"record": torch.zeros(5, 3, dtype=torch.uint8)}, "record: is not .tokens, top_k"),
    ({"record": torch.zeros(4, 3, dtype=torch.int8)}, "record: has to be int32, .* uint8 or uint16"),
    ({"record": torch.zeros(3, 4, dtype=torch.uint8).t()}, "record: the elements of its rows"),
    ({"logits": torch.zeros(4, 256)}, "record: uint8 has room for 255 experts"),
    ({"given_ids": torch.zeros(4, 2, dtype=torch.uint8)}, "given_ids: is not .tokens, top_k"),
    ({"token_mask": torch.ones(3, dtype=torch.bool)}, "token_mask: is not .tokens"),
])
def test_a_wrong_argument_is_named(change, message):
    named = {"logits": torch.zeros(4, 8), "preset": "qwen3_moe", "top_k": 3,
             "record": torch.zeros(4, 3, dtype=torch.uint8), "options": "needs_config=0"} | change
    before = named["record"].clone()
    with pytest.raises(RuntimeError, match=f"switchyard::record_route: .*{message}"):
        switchyard.record_route(**named)
    assert torch.equal(named["record"], before)


@pytest.mark.parametrize("family", ["qwen3_moe", "deepseek_v3", "gpt_oss"])
def test_a_record_is_replayed_on_another_batch(family):
    model = _patched(family)
    heard = Heard(model)
    tokens = torch.randint(2, 97, (5, 8))
    keeps = torch.ones_like(tokens)
    keeps[1, :3] = keeps[4, :6] = 0
    with torch.no_grad():
        plain = model(tokens, attention_mask=keeps).logits
        heard.take()
        with record(model) as recording:
            assert torch.equal(model(tokens, attention_mask=keeps).logits, plain)
        first, made = heard.take(), recording.record
        assert made.ids.dtype == torch.uint8 and made.ids.shape == (40, len(first), made.top_k)
        assert torch.equal(made.is_padding, ~keeps.bool().flatten())
        assert made.sequences == 5 and made.family == family
        for i, (_, _, ids) in enumerate(first):
            own = ~made.is_padding
            assert torch.equal(_ints(made.ids[:, i])[own], ids[own])
        # Replays the sequences in another order, with their experts in that order, too.
        order = torch.tensor([4, 2, 1])
        other = made.take(torch.arange(40).view(5, 8)[order].flatten())
        with replay(model, other):
            model(tokens[order], attention_mask=keeps[order])
        second = heard.take()
        rows = torch.arange(40).view(5, 8)[order].flatten()
        same = 0
        for (logits, weights, ids), (logits2, weights2, ids2) in zip(first, second):
            own = ~other.is_padding
            assert torch.equal(ids[rows][own], ids2[own])
            alike = (logits[rows] == logits2).all(1) & own
            assert torch.equal(weights[rows][alike], weights2[alike])
            same += int(alike.sum())
        assert same > 0
        changed = copy.deepcopy(model)
        with replay(model, made):
            assert torch.equal(model(tokens, attention_mask=keeps).logits, plain)
        # A copy that was made outside of the block is a separate model.
        assert torch.equal(changed(tokens, attention_mask=keeps).logits, plain)
        assert torch.equal(model(tokens, attention_mask=keeps).logits, plain)


def test_a_replay_follows_the_record_and_not_the_router():
    model = _patched()
    heard = Heard(model)
    tokens = torch.randint(2, 97, (2, 6))
    with torch.no_grad():
        with record(model) as recording:
            model(tokens)
        heard.take()
        shuffled = recording.record.take(torch.arange(12).roll(1))
        with replay(model, shuffled):
            model(tokens)
            model(tokens)  # a single record serves each forward
        results = heard.take()
    for n, (logits, weights, ids) in enumerate(results):
        want = _ints(shuffled.ids[:, n % 2])
        assert torch.equal(ids, want)
        share = logits.softmax(1).gather(1, want)
        torch.testing.assert_close(weights, share / share.sum(1, keepdim=True))


@pytest.mark.parametrize("cache, attention", [
    ("dynamic", "sdpa"), ("static", "sdpa"), ("static", "eager")])
def test_generate_gives_one_record(cache, attention):
    """With a static cache, generate() gives the model masks [sequences, 1, tokens, keys]."""
    model = _patched()
    model.set_attn_implementation(attention)
    prompt = torch.randint(2, 97, (3, 5))
    keeps = torch.ones_like(prompt)
    keeps[2, :2] = 0
    with torch.no_grad():
        with record(model) as recording:
            out = model.generate(prompt, attention_mask=keeps, max_new_tokens=4, min_new_tokens=4,
                                 do_sample=False, cache_implementation=cache)
        whole = recording.joined()
        assert len(recording.records) == 4 and whole.ids.shape == (3 * 8, 2, 3)
        keeps = torch.cat([keeps, torch.ones(3, 3, dtype=torch.long)], 1)
        assert torch.equal(whole.is_padding, ~keeps.bool().flatten())
        with record(model) as again:
            model(out[:, :-1], attention_mask=keeps)
        same = (_records.signed(again.record.ids) == _records.signed(whole.ids)).float().mean()
        assert same > 0.99  # the prompt's rows are rounded differently in a longer batch
        with replay(model, recording.records):
            assert torch.equal(out, model.generate(
                prompt, attention_mask=keeps[:, :5], max_new_tokens=4, min_new_tokens=4,
                do_sample=False))
    with pytest.raises(ValueError, match="record: 4 forwards were recorded"):
        recording.record
    # Runs the training step of the README.
    heard = Heard(model)
    mask = (~whole.is_padding).view(3, -1).long()
    with replay(model, whole):
        logits = model(out[:, :-1], attention_mask=mask,
                       position_ids=(mask.cumsum(1) - 1).clamp(min=0)).logits
        logits.logsumexp(2).sum().backward()
    for i, (_, weights, ids) in enumerate(heard.take()):
        own = ~whole.is_padding
        assert torch.equal(ids[own], _ints(whole.ids[:, i])[own])
        assert weights.requires_grad and (ids[~own] < 8).all()
    assert model.model.layers[1].mlp.gate.weight.grad.abs().sum() > 0


def _loss_and_gradients(model, tokens):
    model.zero_grad()
    loss = model(tokens, labels=tokens).loss
    loss.backward()
    return loss.detach(), {n: p.grad.clone() for n, p in model.named_parameters()
                           if p.grad is not None}


@pytest.mark.parametrize("family", ["deepseek_v3", "gpt_oss"])
def test_weights_have_derivatives(family):
    model = _patched(family)
    tokens = torch.randint(2, 97, (3, 6))
    loss, wanted = _loss_and_gradients(model, tokens)
    with record(model) as recording:
        assert torch.equal(_loss_and_gradients(model, tokens)[0], loss)
    with torch.no_grad(), record(model) as ours:
        model(tokens)
    assert torch.equal(_records.signed(recording.record.ids).sort(2).values,
                       _records.signed(ours.record.ids).sort(2).values)
    # If the router itself selects the replayed experts, the replay changes no derivative.
    with replay(model, recording.record):
        again, gradients = _loss_and_gradients(model, tokens)
    assert torch.equal(again, loss) and gradients.keys() == wanted.keys()
    for name, gradient in gradients.items():
        assert torch.equal(gradient, wanted[name]), name
    # If the replayed experts differ from the router's selection, the weights equal RouteTopK's, and
    # the derivatives differ.
    heard = Heard(model)
    other = recording.record.take(torch.arange(18).roll(5))
    with replay(model, other):
        _, gradients = _loss_and_gradients(model, tokens)
        in_torch = heard.take()
        with torch.no_grad():
            model(tokens)
    for i, (one, two) in enumerate(zip(in_torch, heard.take())):
        assert torch.equal(one[2], _ints(other.ids[:, i])) and torch.equal(one[2], two[2])
        if torch.equal(one[0], two[0]):
            torch.testing.assert_close(one[1], two[1], rtol=1e-5, atol=1e-7)
    routers = [n for n in gradients if n.endswith(("gate.weight", "router.weight"))]
    assert routers and all(gradients[n].abs().sum() > 0 for n in routers)
    assert any(not torch.equal(gradients[n], wanted[n]) for n in routers)


def test_gradient_checkpointing():
    model = _patched(num_hidden_layers=1).train()
    tokens = torch.randint(2, 97, (2, 6))
    with record(model) as recording:
        loss, wanted = _loss_and_gradients(model, tokens)
    model.gradient_checkpointing_enable({"use_reentrant": False})
    with record(model) as again:
        _loss_and_gradients(model, tokens)
    assert torch.equal(again.record.ids, recording.record.ids)
    with replay(model, recording.record):
        same, gradients = _loss_and_gradients(model, tokens)
    assert torch.equal(same, loss)
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, wanted[name])


class OneLayer(torch.nn.Module):
    """A model that has only one router, because the models of some families are too large for a
    test."""

    def __init__(self, router, more):
        super().__init__()
        self.router, self.more = router, more

    def forward(self, rows):
        return self.router(rows, *self.more)

    def session(self, kind, plan, *record):
        layer = _sessions.Layer("router", self.router, plan,
                                len(self.router.get_submodule(plan.owner).weight))
        return kind(self, "", [layer], switchyard.transformers._enter_session,
                    switchyard.transformers._leave_session, *record), layer


# One family for each set of options, because families with the same options have the same code.
DIFFERENT = {(str(switchyard.presets().get(f.folder)), "groups" in f.name): f
             for f in reversed(FAMILIES) if f.name not in LEFT_ALONE}


@pytest.mark.parametrize("family", DIFFERENT.values(), ids=lambda family: family.name)
def test_routers(family):
    torch.set_num_threads(1)
    router = _router(family)
    plan = _routers.plan_of(router, torch.float32)
    router.to(torch.float32)
    rows = torch.randn(20, router.weight.shape[1] if hasattr(router, "weight") else 64)
    more = ()
    if family.folder in ("hy_v3", "minimax_m2", "dots3_note", "lfm2_moe"):
        wants = router.forward.__code__.co_varnames[2:router.forward.__code__.co_argcount]
        more = (torch.randn(router.weight.shape[0]) / 8,) if wants else ()
    switchyard.transformers._patch_router(router)
    model = OneLayer(router, more)
    session, layer = model.session(_sessions.Recording, plan)
    with torch.no_grad(), session:
        logits, weights, ids = model(rows)
    made = session.record
    assert torch.equal(_ints(made.ids[:, 0]), ids)
    if _sessions.why_not_replayed(layer) is not None:
        assert "sparsemixer" in _sessions.why_not_replayed(layer).lower()
        return
    order = torch.randperm(20)
    with torch.no_grad(), model.session(_sessions.Replay, plan, made.take(order))[0]:
        logits2, weights2, ids2 = model(rows[order])
    assert torch.equal(ids2, ids[order])
    alike = (logits2 == logits[order]).all(1)
    assert alike.any() and torch.equal(weights2[alike], weights[order][alike])
    # Replays the experts of other tokens. transformers' own code and RouteTopK compute equal
    # weights.
    other = made.take(torch.arange(20).roll(1))
    with model.session(_sessions.Replay, plan, other)[0]:
        with torch.no_grad():
            _, weights, ids = model(rows)
        _, in_torch, ids_in_torch = model(rows)
    assert torch.equal(ids, _ints(other.ids[:, 0])) and torch.equal(ids_in_torch, ids)
    torch.testing.assert_close(in_torch.detach(), weights, rtol=1e-5, atol=1e-9)
    in_torch.square().sum().backward()
    assert next(p for p in router.parameters() if p.dim() == 2).grad is not None


def test_packed_and_padded():
    made = _records.Record(torch.arange(24, dtype=torch.uint8).view(6, 2, 2), ("a", "b"), "f", 24)
    keeps = torch.tensor([[0, 1, 1, 1], [1, 1, 1, 0]])
    padded = made.padded(keeps)
    assert padded.ids.shape == (8, 2, 2) and padded.sequences == 2
    assert torch.equal(padded.is_padding, ~keeps.bool().flatten())
    assert (padded.ids[0] == 255).all()
    assert torch.equal(padded.without_padding().ids, made.ids)
    with pytest.raises(ValueError, match="attention_mask: keeps 5 tokens of .*the record has 6"):
        made.padded(keeps[:, :3])
    with pytest.raises(ValueError, match="ids: has an expert that is none of 23"):
        _records.Record(made.ids, ("a", "b"), "f", 23)
    in_one_layer = made.ids.clone()
    in_one_layer[2, 1] = 255
    assert _records.Record(in_one_layer, ("a", "b"), "f", 24).is_padding.nonzero().tolist() == [[2]]


@pytest.mark.parametrize("experts", [20, 300])
def test_a_file(tmp_path, experts):
    ids = torch.randint(20, (7, 2, 3)).to(_records.dtype_for(experts))
    made = _records.Record(ids, ("one", "two"), "qwen3_moe", experts)
    made = made.padded(torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]]))
    path = tmp_path / "routing.safetensors"
    save_record(made, path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    read = load_record(path)
    assert torch.equal(read.ids, made.ids) and read.ids.dtype == made.ids.dtype
    for field in ("layers", "family", "num_experts", "sequences"):
        assert getattr(read, field) == getattr(made, field)
    # A program without Switchyard can read the file.
    assert torch.equal(safetensors.torch.load_file(path)["ids"], made.ids)

    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ValueError, match=f"load_record: {path}: sha256 of ids is "):
        load_record(path)
    path.write_bytes(whole[:40])
    with pytest.raises(ValueError, match="no safetensors file"):
        load_record(path)
    with safetensors.safe_open(_write(path, whole), "pt") as file:
        fields = file.metadata()
    for change, message in (
            ({"format": "x"}, "format is 'x'"),
            ({"shape": "[4, 4, 3]"}, r"ids are uint\d+ .8, 2, 3., and uint\d+ .4, 4, 3. in its"),
            ({"dtype": "int8"}, "its metadata has no valid 'int8'"),
            ({"top_k": "2"}, "and top_k is 2 in its metadata"),
            ({"sequences": "0"}, "sequences: 0 is neither None nor a number of sequences"),
            ({"sequences": "-1"}, "sequences: -1 is neither None nor a number of sequences"),
            ({"sequences": "true"}, "sequences: True is neither None nor a number of sequences"),
            ({"layers": "\"ab\""}, "layers: 'ab' is not a list of names"),
            ({"num_experts": "2"}, "has an expert|is not uint8"),
            ({"layers": '["one"]'}, "2 layers, where layers has 1 names"),
            ({"sequences": "3"}, "sequences: 3 do not divide 8 tokens")):
        safetensors.torch.save_file({"ids": made.ids}, path, metadata=fields | change)
        with pytest.raises(ValueError, match=f"load_record: {path}: .*({message})"):
            load_record(path)
    more = {"ids": made.ids, "more": made.ids.clone()}
    safetensors.torch.save_file(more, path, metadata=fields)
    with pytest.raises(ValueError, match=r"its tensors are \['ids', 'more'\], not \['ids'\]"):
        load_record(path)
    del fields["sha256"]
    safetensors.torch.save_file({"ids": made.ids}, path, metadata=fields)
    with pytest.raises(ValueError, match="its metadata has no valid 'sha256'"):
        load_record(path)


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(OSError):
        save_record(_records.Record(torch.zeros(4, 1, 2, dtype=torch.uint8), ("a",), "f", 8), folder)
    assert list(tmp_path.iterdir()) == [folder]


def _write(path, content):
    path.write_bytes(content)
    return path


def test_a_record_of_another_model_is_refused(tmp_path):
    tokens = torch.randint(2, 97, (2, 4))
    model = _patched()
    with torch.no_grad(), record(model) as recording:
        model(tokens)
    path = tmp_path / "routing.safetensors"
    save_record(recording.record, path)
    made = load_record(path)
    for other, message in (
            (_patched("olmoe"), "family is qwen3_moe, and olmoe in the model"),
            (_patched(num_experts=16), "num_experts is 8, and 16 in the model"),
            (_patched(num_experts_per_tok=2), "top_k is 3, and 2 in the model"),
            (_patched(num_hidden_layers=3), "the number of layers is 2, and 3 in the model")):
        with pytest.raises(ValueError, match=f"replay: record: {message}"):
            replay(other, made)
    renamed = dataclasses.replace(made, layers=("x", made.layers[1]))
    with pytest.raises(ValueError, match="record: layer x is model.layers.0.mlp.gate in the model"):
        replay(model, renamed)
    with pytest.raises(TypeError, match="save_record: record: not a Record: dict"):
        save_record({}, path)
    with pytest.raises(TypeError, match="record: neither a Record nor a list of them: str"):
        replay(model, ["x"])


def test_a_model_that_cannot_be_recorded_is_refused():
    with pytest.raises(ValueError, match="record: model: model.layers.0.mlp.gate: patch.. has not "
                                         "replaced it; model.layers.1"):
        record(make("qwen3_moe"))
    with pytest.raises(ValueError, match="record: model: has no router that patch"):
        record(torch.nn.Linear(2, 2))
    with pytest.raises(TypeError, match="record: model: not a torch.nn.Module"):
        record("qwen3_moe")
    phi = _patched("phimoe")
    record(phi)
    with pytest.raises(ValueError, match="replay: model: model.layers.0.*Sparsemixer"):
        replay(phi, [])
    model = _patched()
    with record(model):
        with pytest.raises(ValueError, match="model.layers.0.mlp.gate: takes part in a record"):
            record(model)
    record(model)


def test_a_session_that_is_used_wrongly_says_so():
    model = _patched()
    tokens = torch.randint(2, 97, (2, 4))
    gate = model.model.layers[0].mlp.gate
    recording = record(model)
    with pytest.raises(ValueError, match="joined: no forward was recorded"):
        recording.joined()
    with recording, torch.no_grad():
        with pytest.raises(RuntimeError, match="record: it has begun already"):
            recording.__enter__()
        with pytest.raises(TypeError, match="unexpected keyword|multiple values"):
            model(tokens, input_ids=tokens)
        model(tokens)
        model(tokens[:1])
        with pytest.raises(ValueError, match="joined: forwards of 2 and 1 sequences"):
            recording.joined()
        twice = model.model.layers[0].mlp.register_forward_hook(
            lambda mlp, arguments, _: gate(arguments[0].flatten(0, 1)))
        with pytest.raises(RuntimeError, match="record: model.layers.0.mlp.gate runs twice in one"):
            model(tokens)
        twice.remove()
    with replay(model, recording.records[0]):
        with pytest.raises(RuntimeError, match="replay: model.layers.0.mlp.gate runs before a forward"):
            gate(torch.zeros(8, gate.weight.shape[1]))
    for experts in (0, 65536):
        with pytest.raises(ValueError, match=f"num_experts: {experts} is not in 1 to 65535"):
            _records.Record(torch.zeros(1, 1, 1, dtype=torch.uint8), ("a",), "f", experts)


def test_a_forward_that_does_not_fit_is_refused():
    model = _patched()
    tokens = torch.randint(2, 97, (2, 4))
    keeps = torch.tensor([[0, 1, 1, 1], [1, 1, 1, 1]])
    with torch.no_grad():
        want = model(tokens).logits
        with record(model) as recording:
            model(tokens, attention_mask=keeps)
        with replay(model, recording.record):
            with pytest.raises(ValueError, match="token 0 is padding, and none in this forward"):
                model(tokens)
            with pytest.raises(ValueError, match="has 8 tokens, where attention_mask has 6"):
                model(tokens[:, 1:], attention_mask=keeps[:, 1:])
        packed = recording.record.without_padding()
        with replay(model, packed), pytest.raises(ValueError, match="record: has 7 tokens, where "
                                                                    "model.layers.0.mlp.gate"):
            model(tokens)
        with replay(model, [recording.record]):
            model(tokens, attention_mask=keeps)
            with pytest.raises(RuntimeError, match="has 1 forwards, and the model runs another"):
                model(tokens, attention_mask=keeps)
        with record(model), pytest.raises(RuntimeError, match="layers.0.mlp.gate has not run"):
            model.model.layers[0].mlp.forward = lambda hidden: hidden
            model(tokens)
        del model.model.layers[0].mlp.forward
        switchyard.transformers.unpatch(model)
        with pytest.raises(ValueError, match="patch.. has not replaced it"):
            record(model)
        switchyard.transformers.patch(model)
        assert torch.equal(model(tokens).logits, want)


def test_a_compiled_model_is_recorded():
    model = _patched(num_hidden_layers=1)
    tokens = torch.randint(2, 97, (2, 5))
    with torch.no_grad(), record(model) as plain:
        want = model(tokens).logits
    torch._dynamo.reset()
    layer = model.model.layers[0].mlp
    layer.forward = torch.compile(layer.forward, backend="eager")
    with torch.no_grad():
        model(tokens)
        with record(model) as recording:
            torch.testing.assert_close(model(tokens).logits, want)
    assert torch.equal(recording.record.ids, plain.record.ids)


def test_the_metadata_of_a_file_is_text(tmp_path):
    made = _records.Record(torch.zeros(4, 1, 2, dtype=torch.uint8), ("a",), "f", 8, 2)
    save_record(made, tmp_path / "r")
    with safetensors.safe_open(tmp_path / "r", "pt") as file:
        fields = file.metadata()
    assert fields["shape"] == "[4, 1, 2]" and json.loads(fields["layers"]) == ["a"]
    assert set(fields) == {"format", "dtype", "shape", "family", "num_experts", "top_k", "layers",
                           "sequences", "sha256"}

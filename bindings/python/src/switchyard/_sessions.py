# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Context managers that record what a model's routers select, or replay it.

Between __enter__() and __exit__(), routers call the session's run() instead of their forward().
Hooks of the model tell the session where a forward begins and ends.
"""

import inspect
import typing

import torch
from torch.overrides import TorchFunctionMode

import switchyard
from switchyard import _records


class Layer(typing.NamedTuple):
    """A layer with a router that can be recorded and replayed."""

    name: str
    router: torch.nn.Module
    plan: typing.Any  # the Plan of _routers
    num_experts: int


def check_alike(function, layers):
    """Raises ValueError if a layer has other numbers of experts or slots than the first layer."""
    first = layers[0]
    for layer in layers:
        for name, own, firsts in (("num_experts", layer.num_experts, first.num_experts),
                                  ("top_k", layer.plan.top_k, first.plan.top_k)):
            if own != firsts:
                raise ValueError(f"switchyard.transformers.{function}: model: {name} of "
                                 f"{layer.name} is {own}, and {firsts} of {first.name}: a record "
                                 "has one for all layers")
    _records.dtype_for(first.num_experts)


def why_not_replayed(layer):
    """Returns the reason why RouteTopK cannot take this router's experts as given, or None."""
    plan = layer.plan
    try:
        switchyard.route(torch.zeros(1, layer.num_experts), plan.preset, plan.top_k,
                         torch.zeros(layer.num_experts) if plan.has_bias else None,
                         options=plan.options, given_ids=torch.arange(plan.top_k)[None])
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return None


class Session:
    """Base class of sessions: follows the forward that runs, and the layers that have run in it."""

    function = ""  # for errors: the function that made the session

    def __init__(self, root, family, layers, enter, leave):
        check_alike(self.function, layers)
        self.family = family
        self.names = tuple(layer.name for layer in layers)
        self.num_experts, self.top_k = layers[0].num_experts, layers[0].plan.top_k
        self._root, self._layers, self._enter, self._leave = root, layers, enter, leave
        self._index = {layer.router: i for i, layer in enumerate(layers)}
        self._hooks = []
        self._runs = False  # a forward of the model is running
        self._seen = set()

    def __enter__(self):
        if self._hooks:
            raise self._error(RuntimeError, "it has begun already")
        self._enter(self, [layer.router for layer in self._layers])
        self._hooks = [
            self._root.register_forward_pre_hook(self._begin, prepend=True, with_kwargs=True),
            self._root.register_forward_hook(self._end)]
        return self

    def __exit__(self, *exception):
        while self._hooks:
            self._hooks.pop().remove()
        self._leave([layer.router for layer in self._layers])

    def _error(self, kind, what):
        return kind(f"switchyard.transformers.{self.function}: {what}")

    def _begin(self, root, arguments, named):
        try:
            bound = inspect.signature(type(root).forward).bind_partial(root, *arguments, **named)
        except TypeError:  # forward() will raise the same error
            bound = inspect.BoundArguments(inspect.Signature(), {})
        first, second = (bound.arguments.get(n) for n in ("input_ids", "inputs_embeds"))
        first = second if first is None else first
        self.sequences, self._keeps = None, None
        if isinstance(first, torch.Tensor) and first.dim() >= 2:
            self.sequences, length = first.shape[:2]
            mask = bound.arguments.get("attention_mask")
            if isinstance(mask, torch.Tensor) and mask.dim() == 2 and mask.shape[1] >= length:
                self._keeps = mask[:, mask.shape[1] - length:].bool().flatten()
            else:
                self._keeps = _attending(mask, self.sequences, length)
        self._runs, self._seen = True, set()
        self.begin()

    def _end(self, root, arguments, result):
        self._runs = False
        missing = [name for i, name in enumerate(self.names) if i not in self._seen]
        if missing:
            raise self._error(RuntimeError, f"{missing[0]} has not run in this forward, or in code "
                              "that torch.compile had compiled before")
        self.end()

    def _enter_layer(self, router, rows):
        """Returns the layer's number. Checks the rows that the router gets."""
        i = self._index[router]
        if self._runs and i in self._seen:
            raise self._error(RuntimeError, f"{self.names[i]} runs twice in one forward")
        if self._keeps is not None and len(self._keeps) != rows:
            raise self._error(RuntimeError, f"{self.names[i]} routes {rows} tokens, where "
                              f"attention_mask has {len(self._keeps)}")
        self._seen.add(i)
        return i


def _attending(mask, sequences, length):
    """Returns the tokens that attend to any token, as bool [sequences * length], from a mask
    [sequences, heads, length, keys] or a dict of them, which generate() makes for a static cache. A
    token of the padding on the left attends to none. Returns None for other masks."""
    if isinstance(mask, dict):
        mask = next((m for m in mask.values() if isinstance(m, torch.Tensor)), None)
    if not isinstance(mask, torch.Tensor) or mask.dim() != 4 or mask.shape[2] != length:
        return None
    attends = mask if mask.dtype == torch.bool else mask == 0  # floats are added to the scores
    return attends[:, 0].any(-1).expand(sequences, length).flatten()


def _rows_of(hidden):
    return hidden.numel() // hidden.shape[-1]


class Recording(Session):
    """Records each forward of a model. `records` has a Record for each forward."""

    function = "record"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.records = []
        self._ids = None

    @property
    def record(self):
        """The record of the forward, if only one forward has run."""
        if len(self.records) != 1:
            raise self._error(ValueError, f"record: {len(self.records)} forwards were recorded")
        return self.records[0]

    def joined(self):
        """Returns the records of the forwards of generate() as one record [sequences * all tokens,
        layers, top_k]. The last token of a sequence is not in the record, because no forward has
        read it.
        """
        return _records.join(self.records)

    def begin(self):
        self._ids = None

    def end(self):
        if self._keeps is not None:
            _records.signed(self._ids)[~self._keeps] = -1
        whole = self.sequences if self.sequences and len(self._ids) % self.sequences == 0 else None
        self.records.append(_records.Record(self._ids, self.names, self.family, self.num_experts,
                                            whole))
        self._ids = None

    def run(self, router, plan, own, arguments, named):
        if not self._runs:  # gradient checkpointing computes a layer of a past forward again
            return own(*arguments, **named) if plan is None else plan.route(router, *arguments)
        rows = _rows_of(arguments[0])
        i = self._enter_layer(router, rows)
        if self._ids is None:
            self._ids = torch.zeros(rows, len(self.names), self.top_k,
                                    dtype=_records.dtype_for(self.num_experts))
        if len(self._ids) != rows:
            raise self._error(RuntimeError, f"{self.names[i]} routes {rows} tokens, and "
                              f"{self.names[0]} {len(self._ids)}")
        slots = self._ids[:, i]
        if plan is not None:
            return plan.route(router, *arguments, record=slots)
        result = own(*arguments, **named)
        slots.copy_(result[2].reshape(slots.shape))
        return result


class Replay(Session):
    """Replays records: gives the routers of each forward the experts of a record."""

    function = "replay"

    def __init__(self, root, family, layers, enter, leave, record):
        super().__init__(root, family, layers, enter, leave)
        is_one = isinstance(record, _records.Record)
        self._each = [record] if is_one else list(record)
        for r in self._each:
            if not isinstance(r, _records.Record):
                raise self._error(TypeError, "record: neither a Record nor a list of them: "
                                  f"{type(r).__name__}")
            why = r.difference(self.names, family, self.num_experts, self.top_k)
            if why is not None:
                raise self._error(ValueError, f"record: {why}")
        self._repeats, self._next = is_one, 0
        self._record = None

    def begin(self):
        if self._next == len(self._each):
            raise self._error(RuntimeError, f"record: has {len(self._each)} forwards, and the model "
                              "runs another one")
        self._record = self._each[self._next]
        self._next += 0 if self._repeats else 1
        is_padding = self._record.is_padding
        if self._keeps is not None and len(self._keeps) != len(is_padding):
            raise self._error(ValueError, f"record: has {len(is_padding)} tokens, where "
                              f"attention_mask has {len(self._keeps)}")
        wrong = is_padding if self._keeps is None else is_padding & self._keeps
        if bool(wrong.any()):
            raise self._error(ValueError, f"record: token {int(wrong.nonzero()[0])} is padding, and "
                              "none in this forward")
        self._is_padding = is_padding[:, None] if bool(is_padding.any()) else None

    def end(self):
        pass

    def run(self, router, plan, own, arguments, named):
        if self._record is None:
            raise self._error(RuntimeError, f"{self.names[self._index[router]]} runs before a "
                              "forward of the model")
        rows = _rows_of(arguments[0])
        # Outside of a forward, gradient checkpointing computes a layer of the last forward again.
        i = self._enter_layer(router, rows) if self._runs else self._index[router]
        if rows != self._record.tokens:
            raise self._error(ValueError, f"record: has {self._record.tokens} tokens, where "
                              f"{self.names[i]} routes {rows}")
        given = self._record.ids[:, i]
        if plan is None:
            return self._replay_in_torch(i, own, arguments, named, given)
        logits, weights, ids = plan.route(router, *arguments, given_ids=given)
        if self._is_padding is not None:  # a padding token is routed as without a record
            _, live_weights, live_ids = plan.route(router, *arguments)
            weights = torch.where(self._is_padding, live_weights, weights)
            ids = torch.where(self._is_padding, live_ids, ids)
        return logits, weights, ids

    def _replay_in_torch(self, i, own, arguments, named, given):
        plan = self._layers[i].plan
        groups = switchyard._option(plan.options, "num_expert_group",
                                    switchyard.presets()[plan.preset]["num_expert_group"])
        with _GivenTopK(given.long(), self._is_padding, self.num_experts,
                        int(float(groups))) as selection:
            result = own(*arguments, **named)
        if selection.ids is None or not torch.equal(result[2].reshape(given.shape), selection.ids):
            raise self._error(RuntimeError, f"{self.names[i]} is run by transformers' own code, "
                              "which selects in another way than torch.topk: call the model under "
                              "torch.no_grad()")
        return result


class _GivenTopK(TorchFunctionMode):
    """Makes torch.topk select the given experts, so that a router of transformers computes their
    weights, with derivatives. If the router selects groups, the groups of the given experts are
    selected.
    """

    def __init__(self, given, is_padding, num_experts, num_groups):
        super().__init__()
        self._given, self._is_padding = given, is_padding
        self._experts, self._groups = num_experts, num_groups
        self.ids = None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func not in (torch.topk, torch.Tensor.topk):
            return result
        scores = args[0] if args else kwargs["input"]
        tokens, top_k = self._given.shape
        size = scores.shape[-1]
        if size == 0 or scores.numel() != tokens * size:
            return result
        flat, live = scores.reshape(tokens, size), result[1].reshape(tokens, -1)
        if size == self._experts and live.shape[1] == top_k:
            chosen = self._given
        elif self._groups > 1 and size == self._groups:
            # Selects the groups of the given experts first, and then other groups by their scores.
            groups = (self._given // (self._experts // self._groups)).clamp(max=size - 1)
            keys = flat.detach().scatter(1, groups, torch.inf)
            chosen = torch.topk(keys, live.shape[1], dim=1).indices
        else:
            return result
        if self._is_padding is not None:
            chosen = torch.where(self._is_padding, live, chosen)
        if size == self._experts:
            self.ids = chosen
        values = flat.gather(1, chosen)
        return torch.return_types.topk((values.reshape(result[0].shape),
                                        chosen.reshape(result[1].shape)))

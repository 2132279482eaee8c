# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Calls parity.cc through ctypes: presets and RouteTopK on tensors of torch."""

import ctypes

import torch

# The numbers of types in types.h.
TYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2, torch.int32: 3, torch.int64: 5}


class _Array(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("rows", ctypes.c_size_t),
                ("cols", ctypes.c_size_t), ("type", ctypes.c_int)]

    @classmethod
    def of(cls, tensor):
        if tensor is None:
            return cls()
        assert tensor.dim() == 2 and tensor.is_contiguous()
        return cls(tensor.data_ptr(), *tensor.shape, TYPES[tensor.dtype])


class _Arrays(ctypes.Structure):
    _fields_ = [(name, _Array) for name in (
        "logits", "correction_bias", "expert_scale", "given_ids", "topk_ids", "topk_weights",
        "identity_weights")]


def _lines(config):
    """The scalars of a configuration, one per line."""
    return "".join(f"{key}={value}\n" if isinstance(value, str) else f"{key}={float(value)!r}\n"
                   for key, value in (config or {}).items()
                   if isinstance(value, (int, float, str))).encode()


def _numbers(of, text):
    """Parses words name=number into a dict. A text that begins with "!" is an error."""
    if text.startswith("!"):
        raise ValueError(f"{of}: {text[1:]}")
    words = (word.split("=") for word in text.split())
    return {name: float(value) for name, value in words}


class Library:
    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        for name in ("Preset", "Options", "Route", "Families", "Names", "Norm"):
            getattr(self._library, "Switchyard" + name).restype = ctypes.c_char_p

    def families(self):
        """The words of each line of SwitchyardFamilies()."""
        return [line.split() for line in self._library.SwitchyardFamilies().decode().splitlines()]

    def names(self):
        """The names of each field in config.json."""
        lines = self._library.SwitchyardNames().decode().splitlines()
        return {line.split()[0]: line.split() for line in lines}

    def norm(self, family, config, is_block, eps, rows, weight):
        """The preset's norm of each row, with the roundings of its model: the norm that opens the
        next layer, or the norm behind the block.
        """
        out = torch.empty_like(rows)
        arrays = [_Array.of(t) for t in (rows, weight, out)]
        error = self._library.SwitchyardNorm(family.encode(), _lines(config), int(is_block),
                                             ctypes.c_float(eps), *map(ctypes.byref, arrays))
        if error is not None:
            raise ValueError(f"{family}: {error.decode()}")
        return out

    def preset(self, family, config=None):
        """The preset's options by name, with `config`, a dict of a config.json, if it is given."""
        text = self._library.SwitchyardPreset(family.encode(), _lines(config)).decode()
        return _numbers(family, text)

    def options(self, changed):
        """Returns all options by name. `changed` is a dict of the options that are set."""
        settings = " ".join(f"{name}={value}" for name, value in changed.items())
        return _numbers(settings, self._library.SwitchyardOptions(settings.encode()).decode())

    def route(self, family, config, options, routed):
        """Runs RouteTopK with the preset, `config` and then `options` on a router's inputs. Returns
        ids and weights in the shape of routed.ids, [rows, slots], and identity weights [rows].
        """
        ids = torch.empty(routed.ids.shape, dtype=torch.int64)
        weights = torch.empty(routed.ids.shape, dtype=routed.weights.dtype)
        identity = torch.zeros(len(ids), 1, dtype=weights.dtype)
        zero = self.preset(family, config)["num_zero_experts"]
        # The list keeps the arrays alive during the call.
        inputs = [t if t is None else t.contiguous()
                  for t in (routed.logits, routed.bias, routed.scale, routed.given)]
        arrays = _Arrays(*map(_Array.of, [*inputs, ids, weights, identity if zero else None]))
        settings = " ".join(f"{name}={float(value)!r}" for name, value in options.items())
        error = self._library.SwitchyardRoute(family.encode(), _lines(config), settings.encode(),
                                              ctypes.byref(arrays))
        if error is not None:
            raise ValueError(f"{family} {settings}: {error.decode()}")
        return ids, weights, identity[:, 0]

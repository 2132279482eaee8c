# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Quantised experts in save_pretrained() and from_pretrained(): a quantizer of transformers.

A checkpoint has the packed buffers, and config.json the formats of each layer. Experts in floats
are quantised while they are loaded, a layer at a time.
"""

import torch
from transformers.core_model_loading import ConversionOps
from transformers.quantizers.auto import register_quantization_config, register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from switchyard import _experts, _families, _quantized

METHOD = "switchyard"


@register_quantization_config(METHOD)
class ExpertsConfig(QuantizationConfigMixin):
    """quantization_config of from_pretrained(): the format that experts are quantised to.

    `layers` is what save_pretrained() writes for from_pretrained(): the formats of each experts
    module by its name, of gate and up, of down, and the columns between the products.
    """

    def __init__(self, experts_dtype, layers=None, quant_method=METHOD):
        _quantized.check_name(experts_dtype)
        self.quant_method = METHOD
        self.experts_dtype = experts_dtype
        self.layers = layers or {}

    def formats_of(self, name):
        """The formats of a module; `name` may have other parts in front, as a part of a model."""
        for known, formats in self.layers.items():
            if f".{known}".endswith(f".{name}") or f".{name}".endswith(f".{known}"):
                return tuple(formats)
        return None


def experts_in(model):
    """(name, module, Kind) of all modules with experts."""
    for name, module in model.named_modules():
        kind = _families.kind_of(module)
        if kind is not None:
            yield name, module, kind


def layers_of(model):
    """What ExpertsConfig has as `layers` for this model."""
    return {name: list(formats) for name, module, _ in experts_in(model)
            if (formats := _quantized.formats_of(module)) is not None}


def describe(model, experts_dtype):
    """Lets save_pretrained() of a model with quantised experts write their formats."""
    config = ExpertsConfig(experts_dtype, layers_of(model))
    model.config.quantization_config = config
    model.hf_quantizer = ExpertsQuantizer(config, pre_quantized=True)
    model.quantization_method = METHOD
    model.is_quantized = True


class _Pack(ConversionOps):
    """The last step of loading a parameter of experts: packs it, and loads nothing."""

    def __init__(self, quantizer):
        self.quantizer = quantizer

    def convert(self, input_dict, full_layer_name=None, missing_keys=None, **named):
        (value,) = input_dict.values()
        value = value[0] if isinstance(value, list) else value
        self.quantizer.load(full_layer_name, value)
        if missing_keys is not None:
            missing_keys.discard(full_layer_name)
        return {}


@register_quantizer(METHOD)
class ExpertsQuantizer(HfQuantizer):
    requires_calibration = False

    def __init__(self, quantization_config, **kwargs):
        super().__init__(quantization_config, **kwargs)
        self._parameters = {}  # (module, Kind, formats, role) by a parameter's name, while it loads

    def _process_model_before_weight_loading(self, model, **kwargs):
        for name, module, kind in list(experts_in(model)):
            if self.pre_quantized:
                formats = self.quantization_config.formats_of(name)
                if formats is not None:
                    _quantized.make_empty(module, kind, formats)
                    module._is_hf_initialized = True
                continue
            try:
                _experts.options_of(module, kind)
                formats, _ = _quantized.plan(module, kind, self.quantization_config.experts_dtype)
            except _experts.Unsupported:
                continue
            for role, path in kind.sources(module).items():
                self._parameters[f"{name}.{path}" if name else path] = module, kind, formats, role

    def param_needs_quantization(self, model, param_name, **kwargs):
        return param_name in self._parameters

    def get_quantize_ops(self):
        return _Pack(self)

    def load(self, name, value):
        module, kind, formats, role = self._parameters[name]
        owner, attribute = _quantized.owner_of(module, kind.sources(module)[role])
        empty = owner._parameters[attribute]
        owner._parameters[attribute] = torch.nn.Parameter(value.view(empty.shape), requires_grad=False)
        _quantized.quantize_role(module, kind, formats, role, getattr(kind.weights(module), role))
        owner._parameters[attribute] = empty  # on the meta device, until all are packed
        if all(hasattr(module, f"packed_{r}") for r in kind.sources(module)):
            for r in kind.sources(module):
                _quantized.drop_parameter(module, kind, r)
            module._packed_formats = formats
            module._is_hf_initialized = True

    def _process_model_after_weight_loading(self, model, **kwargs):
        self._parameters = {}
        for _, module, _ in experts_in(model):
            for name in ("packed_up", "packed_down", "packed_gate"):
                buffer = module._buffers.get(name)
                # Files align tensors to 8 bytes; products read whole cache lines.
                if buffer is not None and buffer.data_ptr() % 64 != 0:
                    module._buffers[name] = buffer.clone()
        describe(model, self.quantization_config.experts_dtype)
        model.set_experts_implementation(METHOD)  # no other one has these products
        return model

    def is_serializable(self):
        return True

    @property
    def is_trainable(self):
        return False

    @property
    def is_compileable(self):
        return True

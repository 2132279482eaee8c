# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Quantised experts in save_pretrained() and from_pretrained(): a quantizer of transformers.

A checkpoint stores the packed buffers, and config.json stores the formats of each layer. Float
experts are quantised while they are loaded, a layer at a time. MXFP4 experts of a checkpoint, as in
gpt-oss, and the blocks of a GGUF are packed without a change of values.
"""

import collections
import contextlib

import torch
from transformers.core_model_loading import ConversionOps
from transformers.integrations.gguf.utils import get_gguf_plan, replace_with_gguf_modules
from transformers.quantizers.auto import (AUTO_QUANTIZER_MAPPING, register_quantization_config,
                                          register_quantizer)
from transformers.quantizers.base import HfQuantizer
from transformers.utils import logging
from transformers.utils.quantization_config import QuantizationConfigMixin

import switchyard
from switchyard import _experts, _families, _quantized

METHOD = "switchyard"
_logger = logging.get_logger(__name__)


@register_quantization_config(METHOD)
class ExpertsConfig(QuantizationConfigMixin):
    """Pass this as quantization_config to from_pretrained(), to quantise experts to a format.

    save_pretrained() writes `layers` for from_pretrained(). This dict maps the name of each experts
    module to the format of gate and up, the format of down, and the intermediate size.
    """

    def __init__(self, experts_dtype, layers=None, quant_method=METHOD):
        _quantized.check_name(experts_dtype)
        self.quant_method = METHOD
        self.experts_dtype = experts_dtype
        self.layers = {} if layers is None else layers
        if not isinstance(self.layers, dict):
            raise ValueError(f"layers: not a dict of names: {layers!r}")
        for name, formats in self.layers.items():
            if not (isinstance(formats, (list, tuple)) and len(formats) == 3
                    and isinstance(formats[2], int)):
                raise ValueError(f"layers: {name}: not two formats and a number: {formats!r}")
            for one in formats[:2]:
                _quantized.check_name(one)

    def formats_of(self, name):
        """Returns the formats of the module `name`, or None. The name may have more or fewer leading
        parts than the module's key in `layers`, for example "model." in front."""
        known = self.known_as(name)
        return None if known is None else tuple(self.layers[known])

    def known_as(self, name):
        """Returns the key in `layers` of the module `name`, or None."""
        if name in self.layers:
            return name
        return next((known for known in self.layers if f".{known}".endswith(f".{name}")
                     or f".{name}".endswith(f".{known}")), None)


def experts_in(model):
    """Yields (name, module, Kind) for each module with experts."""
    for name, module in model.named_modules():
        kind = _families.kind_of(module)
        if kind is not None:
            yield name, module, kind


def layers_of(model):
    """Returns the value of ExpertsConfig.layers for this model."""
    return {name: list(formats) for name, module, _ in experts_in(model)
            if (formats := _quantized.formats_of(module)) is not None}


def describe(model, experts_dtype):
    """Makes save_pretrained() write the formats of the model's quantised experts."""
    config = ExpertsConfig(experts_dtype, layers_of(model))
    model.config.quantization_config = config
    model.hf_quantizer = ExpertsQuantizer(config, pre_quantized=True)
    model.quantization_method = METHOD
    model.is_quantized = True


@contextlib.contextmanager
def described(model):
    """Context in which the model's config has exactly the formats of the model's experts.

    Outside of the context, the config may have other formats: if only parts of the model were
    quantised, or if a model with float experts shares the config object.
    """
    layers = layers_of(model)
    config = getattr(model.config, "quantization_config", None)
    if isinstance(config, dict) and config.get("quant_method") == METHOD:
        config = ExpertsConfig(**config)
    is_ours = isinstance(config, ExpertsConfig)
    if layers and not (is_ours and config.layers == layers):
        describe(model, config.experts_dtype if is_ours else next(iter(layers.values()))[0])
    if layers or not is_ours:
        yield
        return
    kept = model.config.__dict__.pop("quantization_config")
    try:
        yield
    finally:
        model.config.quantization_config = kept


def _keep_from_initialization(module, kind):
    """Keeps transformers from writing random numbers to the experts' parameters, which are dropped."""
    for path in kind.sources(module).values():
        _quantized.owner_of(module, path)[0]._is_hf_initialized = True


class _Parameters:
    """The names of the experts' parameters that are packed while a checkpoint is loaded."""

    def __init__(self):
        self._of = {}  # (module, Kind, formats, role) by a parameter's full name

    def add(self, name, module, kind, formats):
        for role, path in kind.sources(module).items():
            self._of[f"{name}.{path}" if name else path] = module, kind, formats, role

    def __deepcopy__(self, memo):
        return self  # the loader copies its operations, but modules must not be copied

    def __contains__(self, name):
        return name in self._of

    def element_size(self, name, param):
        """Returns the size of a parameter's elements in bytes, for device_map="auto"."""
        if name not in self._of:
            return param.element_size()
        _, _, formats, role = self._of[name]
        block = switchyard.weight_formats()[formats[1] if role == "down" else formats[0]]
        return block.bytes / block.columns

    def require_all(self):
        """Raises ValueError if a parameter is not packed yet, because the experts would compute with
        random numbers."""
        for name, (module, _, _, role) in self._of.items():
            if not hasattr(module, f"packed_{role}"):
                raise ValueError(f"{name}: the checkpoint does not have it")

    def load(self, name, pack):
        """Calls pack(parameters, attribute, module, kind, formats, role), which registers the packed
        weights of the parameter parameters[attribute]. Drops the module's parameters once the module
        has all packed weights.
        """
        module, kind, formats, role = self._of[name]
        owner, attribute = _quantized.owner_of(module, kind.sources(module)[role])
        empty = owner._parameters[attribute]
        if hasattr(empty, "to_local"):
            raise ValueError(f"{name}: a distributed tensor, and experts are packed as a whole")
        pack(owner._parameters, attribute, module, kind, formats, role)
        owner._parameters[attribute] = empty  # on the meta device, until all weights are packed
        if all(hasattr(module, f"packed_{r}") for r in kind.sources(module)):
            for r in kind.sources(module):
                _quantized.drop_parameter(module, kind, r)
            _quantized.set_formats(module, formats)
            _keep_from_initialization(module, kind)


def _is_loaded(module, buffer):
    """True if the buffer was in a checkpoint. transformers marks such buffers. accelerate's hooks copy
    buffers without the mark, so any buffer of a module with hooks counts as loaded."""
    return hasattr(module, "_hf_hook") or getattr(buffer, "_is_hf_initialized", False)


class _Pack(ConversionOps):
    """Packs a parameter of experts as the last step of its loading, and keeps no floats."""

    def __init__(self, quantizer):
        self.quantizer = quantizer

    def convert(self, input_dict, full_layer_name=None, missing_keys=None, **named):
        (value,) = input_dict.values()
        value = value[0] if isinstance(value, list) else value
        def pack(parameters, attribute, module, kind, formats, role):
            shape = parameters[attribute].shape
            parameters[attribute] = torch.nn.Parameter(value.view(shape), requires_grad=False)
            weights = getattr(kind.weights(module), role)
            _quantized.quantize_role(module, kind, formats, role, weights)

        self.quantizer.parameters.load(full_layer_name, pack)
        if missing_keys is not None:
            missing_keys.discard(full_layer_name)
        return {}


@register_quantizer(METHOD)
class ExpertsQuantizer(HfQuantizer):
    requires_calibration = False

    def __init__(self, quantization_config, **kwargs):
        super().__init__(quantization_config, **kwargs)
        self.parameters = _Parameters()

    def _process_model_before_weight_loading(self, model, **kwargs):
        if self.pre_quantized:
            found = {self.quantization_config.known_as(name) for name, _, _ in experts_in(model)}
            lost = sorted(self.quantization_config.layers.keys() - found)
            if lost:
                raise ValueError(f"quantization_config: layers: {type(model).__name__} has no "
                                 f"experts of the name {lost[0]}")
        others = collections.Counter()
        for name, module, kind in list(experts_in(model)):
            if self.pre_quantized:
                formats = self.quantization_config.formats_of(name)
                if formats is not None:
                    _quantized.make_empty(module, kind, formats)
                    _keep_from_initialization(module, kind)
                continue
            try:
                _experts.options_of(module, kind)
                formats, why = _quantized.plan(module, kind, self.quantization_config.experts_dtype)
            except _experts.Unsupported as why_not:
                others[type(module).__name__, f"its weights stay floats: {why_not}"] += 1
                continue
            if why:
                says = "gate and up {}, down {}, {}".format(*formats[:2], why)
                others[type(module).__name__, says] += 1
            self.parameters.add(name, module, kind, formats)
        for (cls, says), n in others.items():
            _logger.warning("switchyard: %d x %s: %s", n, cls, says)

    def param_element_size(self, model, param_name, param):
        return self.parameters.element_size(param_name, param)

    def param_needs_quantization(self, model, param_name, **kwargs):
        return param_name in self.parameters

    def get_quantize_ops(self):
        return _Pack(self)

    def _process_model_after_weight_loading(self, model, **kwargs):
        self.parameters.require_all()
        self.parameters = _Parameters()
        for path, module, _ in experts_in(model):
            for name in ("packed_up", "packed_down", "packed_gate"):
                buffer = module._buffers.get(name)
                if buffer is not None and self.pre_quantized and not _is_loaded(module, buffer):
                    raise ValueError(f"{path}.{name}: the checkpoint does not have it")
                # Files align tensors to 8 bytes only, and products are faster if weights start at a
                # cache line.
                if buffer is not None and buffer.data_ptr() % 64 != 0:
                    module._buffers[name] = buffer.clone()
        describe(model, self.quantization_config.experts_dtype)
        model.set_experts_implementation(METHOD)  # only Switchyard can multiply these weights
        return model

    def is_serializable(self):
        return True

    @property
    def is_trainable(self):
        return False

    @property
    def is_compileable(self):
        return True


def ggml_blocks(blocks, scales):
    """Makes GGML's blocks [..., groups * 17] from a checkpoint's codes [..., groups, 16] and scales
    [..., groups].

    In a checkpoint, byte i of a group has elements 2 i and 2 i + 1, low nibble first. In GGML's
    block, byte i has elements i and i + 16.
    """
    codes = torch.stack([blocks & 15, blocks >> 4], -1).flatten(-2)
    halves = codes[..., :16] | codes[..., 16:] << 4
    return torch.cat([scales[..., None], halves], -1).flatten(-2)


class _PackMxfp4(ConversionOps):
    """Packs a product's unchanged blocks and scales, expert by expert, and keeps no floats."""

    def __init__(self, hf_quantizer):
        self.hf_quantizer = hf_quantizer

    def convert(self, input_dict, full_layer_name=None, missing_keys=None, **named):
        attribute = full_layer_name.rpartition(".")[2]
        blocks, scales = (
            tensor[0] if isinstance(tensor := input_dict[f"{attribute}_{part}"], list) else tensor
            for part in ("blocks", "scales"))

        def pack(parameters, attribute, module, kind, formats, role):
            experts, *of_expert = parameters[attribute].shape
            rows, cols = reversed(of_expert) if kind.is_transposed(module) else of_expert
            for tensor, name, shape in ((blocks, "blocks", (experts, rows, cols // 32, 16)),
                                        (scales, "scales", (experts, rows, cols // 32))):
                if tuple(tensor.shape) != shape or tensor.dtype != torch.uint8:
                    raise ValueError(f"{full_layer_name}_{name}: {tensor.dtype} "
                                     f"{list(tensor.shape)}, not uint8 {list(shape)}")
            module.register_buffer(f"packed_{role}", _quantized.pack_each(
                experts, lambda e: ggml_blocks(blocks[e:e + 1], scales[e:e + 1]), "mxfp4"))

        self.hf_quantizer.parameters.load(full_layer_name, pack)
        if missing_keys is not None:
            missing_keys.discard(full_layer_name)
        return {}


def _is_cpu(device_map):
    places = device_map.values() if isinstance(device_map, dict) else [device_map]
    cpu = {"None", "cpu"}
    if not torch.accelerator.is_available():
        cpu |= {"auto", "balanced", "balanced_low_0", "sequential"}
    return all(str(place) in cpu for place in places)


class Mxfp4Quantizer(AUTO_QUANTIZER_MAPPING["mxfp4"]):
    """Quantizer of transformers, except that experts stay MXFP4 on a CPU if Switchyard runs them.

    Switchyard runs them with experts_implementation="switchyard", unless
    Mxfp4Config(dequantize=True) asks for floats.
    """

    def __init__(self, quantization_config, **kwargs):
        super().__init__(quantization_config, **kwargs)
        self.parameters = _Parameters()
        self._floats_wanted = quantization_config.dequantize
        self._is_packed = False
        self._environment = ()

    def validate_environment(self, *arguments, **named):
        # Keeps the arguments, to call transformers' check later, and only if transformers runs the
        # experts. The check warns about Triton, and Switchyard needs no Triton.
        self._environment = arguments, named

    def _process_model_before_weight_loading(self, model, device_map=None, use_kernels=False, **named):
        self._is_packed = (self.pre_quantized and not self._floats_wanted and not use_kernels
                           and model.config._experts_implementation == METHOD and _is_cpu(device_map))
        if not self._is_packed:
            super().validate_environment(*self._environment[0], **self._environment[1])
            return super()._process_model_before_weight_loading(
                model, device_map=device_map, use_kernels=use_kernels, **named)
        for name, module, kind in experts_in(model):
            _experts.options_of(module, kind)
            formats, _ = _quantized.plan(module, kind, "mxfp4")
            self.parameters.add(name, module, kind, formats)
        return model

    def _process_model_after_weight_loading(self, model, **kwargs):
        if not self._is_packed:
            return super()._process_model_after_weight_loading(model, **kwargs)
        self.parameters.require_all()
        self.parameters = _Parameters()
        # Removes our conversions, because save_pretrained() would try to revert them.
        model._weight_conversions = [c for c in model._weight_conversions if not any(
            isinstance(op, _PackMxfp4) for op in getattr(c, "operations", ()))]
        describe(model, "mxfp4")
        return model

    def param_element_size(self, model, param_name, param):
        if self._is_packed:
            return self.parameters.element_size(param_name, param)
        return super().param_element_size(model, param_name, param)

    def get_load_operations(self):
        operations = super().get_load_operations()
        return operations | {"deserialize": _PackMxfp4} if self._is_packed else operations


AUTO_QUANTIZER_MAPPING["mxfp4"] = Mxfp4Quantizer


class _Types:
    """Tells replace_with_gguf_modules() which GGML types to keep as blocks."""

    @staticmethod
    def supports(ggml_type):
        return ggml_type in _families.GGML_TYPES


class GgufQuantizer(AUTO_QUANTIZER_MAPPING["gguf"]):
    """Quantizer of transformers, except that experts keep a GGUF's blocks on a CPU.

    transformers keeps blocks only if it has a kernel for them, and expands a GGUF to floats on a
    CPU. With experts_implementation="switchyard" the experts' blocks are packed instead, unless
    GgufConfig(dequantize=True) asks for floats.
    """

    def __init__(self, quantization_config, **kwargs):
        super().__init__(quantization_config, **kwargs)
        self._floats_wanted = quantization_config.dequantize

    def _process_model_before_weight_loading(self, model, device_map=None, **named):
        super()._process_model_before_weight_loading(model, device_map=device_map, **named)
        if (self.supported and self.quantization_config.dequantize and not self._floats_wanted
                and model.config._experts_implementation == METHOD and _is_cpu(device_map)):
            _, packable, _ = get_gguf_plan(self.header, self.mapping)
            plan = {name: ggml_type for name, ggml_type in packable.items()
                    if name.rpartition(".")[0].endswith(".experts")}
            if plan:
                self.packed_modules = replace_with_gguf_modules(model, plan, _Types, self.dtype)

    def _process_model_after_weight_loading(self, model, **named):
        model = super()._process_model_after_weight_loading(model, **named)
        if self.quantization_config.dequantize and self.packed_modules:
            modules = dict.fromkeys(self.packed_modules.values())
            for module in modules:
                kind = _families.kind_of(module)
                _quantized.quantize(module, kind, kind.weights(module).formats, lambda: None)
            describe(model, _quantized.formats_of(next(iter(modules)))[0])
            model.set_experts_implementation(METHOD)
        return model


AUTO_QUANTIZER_MAPPING["gguf"] = GgufQuantizer

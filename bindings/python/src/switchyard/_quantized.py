# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Experts modules with weights packed in the library's formats.

A quantised module has its weights in buffers, which state_dict() contains: packed_up, packed_down
and, with a split gate, packed_gate. The original parameters are None. The attribute _packed_formats
is (format of up and gate, format of down, intermediate size), or () while only some of the
parameters are packed.
"""

import torch

import switchyard
from switchyard._experts import DTYPES, Unsupported, Weights

FORMATS = tuple(switchyard.weight_formats())
_MOST_COLUMNS = 131071


def check_name(name):
    if name not in FORMATS:
        raise ValueError(f"experts_dtype: unknown: {name!r}; there are {', '.join(FORMATS)}")


def formats_of(module):
    """Returns the _packed_formats of a module, or None if its weights are floats."""
    formats = getattr(module, "_packed_formats", None)
    if formats == ():
        raise RuntimeError(f"switchyard: {type(module).__name__}: quantising it was interrupted, and "
                           "a part of its floats is gone: load the model again")
    return formats


def weights_of(module, kind):
    """Returns the module's Weights, whether they are packed or not."""
    formats = formats_of(module)
    if formats is None:
        return kind.weights(module)
    return Weights(module.packed_up, module.packed_down, *kind.biases(module),
                   gate=getattr(module, "packed_gate", None), formats=formats)


def format_for(name, cols):
    """Returns the format to use if `name` is requested for `cols` columns. It is a format of 8 bits
    if the blocks of `name` do not divide the columns, as in GGUF files."""
    for candidate in (name, "q8_0", "int8"):
        if cols % switchyard.weight_formats()[candidate].columns == 0 and cols <= _MOST_COLUMNS:
            return candidate
    raise Unsupported(f"a product has {cols} columns, and {_MOST_COLUMNS} are the most")


def plan(module, kind, name):
    """Returns the _packed_formats for the module's weights if the format `name` is requested. Also
    returns the reason why a format differs from `name`, or "". Raises Unsupported if the module
    cannot be quantised.
    """
    weights = kind.weights(module)
    if weights.formats is not None:
        others = set(weights.formats[:2]) - {name}
        return weights.formats, "as its GGUF has them" if others else ""
    for tensor in (weights.up, weights.down):
        if tensor.dtype not in DTYPES:
            raise Unsupported(f"no products of {tensor.dtype}")
    at = -2 if kind.is_transposed(module) else -1
    hidden, intermediate = weights.up.shape[at], weights.down.shape[at]
    formats = format_for(name, hidden), format_for(name, intermediate), intermediate
    odd = [cols for cols, taken in zip((hidden, intermediate), formats) if taken != name]
    why = (f"because {odd[0]} columns are no multiple of "
           f"{switchyard.weight_formats()[name].columns}") if odd else ""
    return formats, why


def is_format(formats, name):
    """True if a module with these _packed_formats may come from quantising floats to `name`."""
    return formats[1] == format_for(name, formats[2]) and formats[0] in (name, "q8_0", "int8")


def pack_each(experts, one_of, name, on_expert=lambda: None):
    """Packs one product's weights. one_of(e) returns the weights of expert e."""
    packed = None
    # Leaves inference mode, because load_state_dict() cannot write to tensors made in it.
    with torch.inference_mode(False), torch.no_grad():
        for e in range(experts):
            one = switchyard.pack_weights(one_of(e), name)
            if packed is None:
                packed = one.new_empty((experts, one.shape[1]))
            packed[e] = one[0]
            on_expert()
    return packed


def pack(weights, name, transposed, on_expert=lambda: None):
    """Packs a tensor [experts, ...]. Floats are quantised; blocks stay unchanged."""
    def one_of(e):
        expert = weights[e:e + 1].detach()
        return expert.transpose(1, 2) if transposed else expert

    return pack_each(len(weights), one_of, name, on_expert)


def _add_formats(module, state_dict, prefix, metadata):
    """Writes the formats beside the state's tensors. torch.save() keeps such metadata; a file of
    safetensors does not, and there config.json has the formats."""
    metadata["packed_formats"] = module._packed_formats


def _refuse_other_formats(module, state_dict, prefix, metadata, strict, missing, unexpected, errors):
    """Refuses a state in other formats, because torch would load f16 into buffers of bf16, which have
    the same size."""
    theirs, ours = metadata.get("packed_formats"), module._packed_formats
    if theirs is None or theirs[:2] == ours[:2]:
        return
    errors.append(f"{prefix[:-1]}: the state has experts of {theirs[0]} and {theirs[1]}, "
                  f"and the model has {ours[0]} and {ours[1]}")
    for name in module._buffers:
        state_dict.pop(prefix + name, None)  # so that torch does not copy it


def set_formats(module, formats):
    module._packed_formats = tuple(formats)
    module.register_state_dict_post_hook(_add_formats)
    module.register_load_state_dict_pre_hook(_refuse_other_formats)


def owner_of(module, path):
    owner, _, name = path.rpartition(".")
    return module.get_submodule(owner), name


def quantize_role(module, kind, formats, role, tensor, on_expert=lambda: None):
    """Packs a product's weights. The parameter stays until drop_parameter()."""
    # Only floats may be transposed; blocks of a GGUF never are.
    transposed = tensor.is_floating_point() and kind.is_transposed(module)
    name = formats[1] if role == "down" else formats[0]
    module.register_buffer(f"packed_{role}", pack(tensor, name, transposed, on_expert))


def drop_parameter(module, kind, role):
    owner, name = owner_of(module, kind.sources(module)[role])
    owner.register_parameter(name, None)


def quantize(module, kind, formats, on_expert):
    """Packs the module's weights, and frees the floats of each product once it is packed."""
    weights = kind.weights(module)
    tensors = {role: getattr(weights, role) for role in kind.sources(module)}
    del weights
    for role in list(tensors):
        quantize_role(module, kind, formats, role, tensors.pop(role), on_expert)
        module._packed_formats = ()
        drop_parameter(module, kind, role)
    set_formats(module, formats)


def make_empty(module, kind, formats):
    """Gives the module empty buffers into which weights of these formats are loaded."""
    weights, transposed = kind.weights(module), kind.is_transposed(module)
    for role in kind.sources(module):
        tensor = getattr(weights, role)
        rows, cols = tensor.shape[:0:-1] if transposed else tensor.shape[1:]
        size = torch.ops.switchyard.packed_weights_size(
            formats[1] if role == "down" else formats[0], rows, cols)
        module.register_buffer(f"packed_{role}", torch.empty(
            (len(tensor), size), dtype=torch.uint8, device=tensor.device))
    for role in kind.sources(module):
        drop_parameter(module, kind, role)
    set_formats(module, formats)

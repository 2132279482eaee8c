# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Records of routing: the experts of each token in each layer, and files of them."""

import dataclasses
import hashlib
import json
import os
import pathlib
import secrets

import safetensors
import safetensors.torch
import torch

_DTYPES = {"uint8": torch.uint8, "uint16": torch.uint16}
_FORMAT = "switchyard.record 1"


def dtype_for(num_experts):
    """Returns the dtype of a record of `num_experts` experts. The dtype's largest value marks
    padding."""
    if not 0 < num_experts <= 65535:
        raise ValueError(f"switchyard.transformers: num_experts: {num_experts} is not in 1 to 65535, "
                         "the numbers of experts that a record can have")
    return torch.uint8 if num_experts <= 255 else torch.uint16


def signed(ids):
    """Returns unsigned ids as signed integers of the same size, because torch has more operators
    for signed ones. The mark of padding tokens becomes -1.
    """
    return ids.view(torch.int8 if ids.dtype == torch.uint8 else torch.int16)


@dataclasses.dataclass(frozen=True, eq=False)
class Record:
    """The experts that routers have selected: ids[token, layer, slot], best first.

    ids is uint8 for up to 255 experts and uint16 for more. A padding token has the mark 255 or
    65535 in all slots. The first dimension has all tokens of the batch's first sequence, then all
    tokens of the second, and so on.
    """

    ids: torch.Tensor
    layers: tuple  # the names of the routers in the model
    family: str  # config.model_type
    num_experts: int
    sequences: int | None = None  # the sequences of the batch, if they all have the same length

    def __post_init__(self):
        def refuse(field, what):
            raise ValueError(f"switchyard.transformers.Record: {field}: {what}")

        if (not isinstance(self.layers, (list, tuple))
                or not all(isinstance(name, str) for name in self.layers)):
            refuse("layers", f"{self.layers!r} is not a list of names")
        object.__setattr__(self, "layers", tuple(self.layers))
        dtype = dtype_for(self.num_experts)
        if self.ids.dim() != 3 or self.ids.dtype != dtype:
            refuse("ids", f"{_says(self.ids)} is not {str(dtype)[6:]} [tokens, layers, top_k], for "
                   f"{self.num_experts} experts")
        if self.ids.shape[1] != len(self.layers):
            refuse("ids", f"{_says(self.ids)} has {self.ids.shape[1]} layers, where layers has "
                   f"{len(self.layers)} names")
        wide = self.ids.to(torch.int32)
        if bool(((wide >= self.num_experts) & (signed(self.ids) != -1)).any()):
            refuse("ids", f"has an expert that is none of {self.num_experts}")
        if self.sequences is not None and (type(self.sequences) is not int or self.sequences < 1):
            refuse("sequences", f"{self.sequences!r} is neither None nor a number of sequences")
        if self.sequences is not None and len(self.ids) % self.sequences != 0:
            refuse("sequences", f"{self.sequences} do not divide {len(self.ids)} tokens")

    tokens = property(lambda self: self.ids.shape[0])
    top_k = property(lambda self: self.ids.shape[2])

    @property
    def is_padding(self):
        """bool [tokens]: True for tokens that have the mark of padding in any layer."""
        return (signed(self.ids) == -1).flatten(1).any(1)

    def take(self, tokens):
        """Returns a record of the given tokens: indices in any order, or a mask of bool."""
        return self._of(signed(self.ids)[tokens])

    def without_padding(self):
        """Returns a record without padding tokens, for a packed batch."""
        return self.take(~self.is_padding)

    def padded(self, attention_mask):
        """Returns a record for a padded batch. Tokens with True in attention_mask get the experts of
        this record's tokens, in order. Tokens with False become padding.
        """
        keeps = attention_mask.bool()
        if keeps.dim() != 2 or int(keeps.sum()) != self.tokens:
            raise ValueError(f"switchyard.transformers.Record: attention_mask: keeps "
                             f"{int(keeps.sum())} tokens of {list(keeps.shape)}, where the record "
                             f"has {self.tokens}")
        ids = signed(self.ids).new_full((keeps.numel(), *self.ids.shape[1:]), -1)
        ids[keeps.flatten()] = signed(self.ids)
        return self._of(ids, len(keeps))

    def _of(self, ids, sequences=None):
        return dataclasses.replace(self, ids=ids.view(self.ids.dtype), sequences=sequences)

    def difference(self, layers, family, num_experts, top_k):
        """Returns the first contradiction between the record and a model, as text, or None."""
        for name, own, models in (("family", self.family, family),
                                  ("num_experts", self.num_experts, num_experts),
                                  ("top_k", self.top_k, top_k),
                                  ("the number of layers", len(self.layers), len(layers))):
            if own != models:
                return f"{name} is {own}, and {models} in the model"
        for own, models in zip(self.layers, layers):
            if own != models:
                return f"layer {own} is {models} in the model"
        return None


def join(records):
    """Joins the records of forwards that continue the same sequences, as generate() runs them. In
    the joined record, the tokens of a sequence follow each other.
    """
    if not records:
        raise ValueError("switchyard.transformers: joined: no forward was recorded")
    first = records[0]
    for r in records:
        if r.sequences is None or r.sequences != first.sequences:
            raise ValueError(f"switchyard.transformers: joined: forwards of {first.sequences} and "
                             f"{r.sequences} sequences")
    parts = [signed(r.ids).unflatten(0, (r.sequences, -1)) for r in records]
    return first._of(torch.cat(parts, 1).flatten(0, 1), first.sequences)


def _says(tensor):
    return f"{str(tensor.dtype)[6:]} {list(tensor.shape)}"


def _digest(ids):
    return hashlib.sha256(signed(ids).contiguous().numpy().tobytes()).hexdigest()


def save(record, path):
    """Writes a record to the file that load() reads."""
    path = pathlib.Path(path)
    fields = {"format": _FORMAT, "dtype": str(record.ids.dtype)[6:],
              "shape": json.dumps(list(record.ids.shape)), "family": record.family,
              "num_experts": str(record.num_experts), "top_k": str(record.top_k),
              "layers": json.dumps(record.layers), "sequences": json.dumps(record.sequences),
              "sha256": _digest(record.ids)}
    # Writes another file and renames it, so that an interruption leaves no part of a record.
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        safetensors.torch.save_file({"ids": record.ids.contiguous()}, part, metadata=fields)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def load(path):
    """Reads a record that save() wrote: safetensors with one tensor, ids, and this metadata as
    text: format, dtype, shape, family, num_experts, top_k, layers (a JSON list), sequences, and
    sha256, the digest of the bytes of ids. Raises ValueError if ids and metadata contradict each
    other.
    """
    def refuse(what):
        raise ValueError(f"switchyard.transformers.load_record: {os.fspath(path)}: {what}")

    try:
        with safetensors.safe_open(path, "pt") as file:
            fields, names = file.metadata() or {}, list(file.keys())
            if fields.get("format") != _FORMAT:
                refuse(f"format is {fields.get('format')!r}, not {_FORMAT!r}")
            if names != ["ids"]:
                refuse(f"its tensors are {names}, not ['ids']")
            ids = file.get_tensor("ids")
    except safetensors.SafetensorError as error:
        refuse(f"no safetensors file: {error}")
    try:
        wanted = json.loads(fields["shape"]), _DTYPES[fields["dtype"]]
        found = list(ids.shape), ids.dtype
        num_experts, top_k = int(fields["num_experts"]), int(fields["top_k"])
        layers, sequences = json.loads(fields["layers"]), json.loads(fields["sequences"])
        family, digest = fields["family"], fields["sha256"]
    except (KeyError, ValueError) as error:
        refuse(f"its metadata has no valid {error}")
    if found != wanted:
        refuse(f"ids are {_says(ids)}, and {fields['dtype']} {wanted[0]} in its metadata")
    if ids.shape[2:] != (top_k,):
        refuse(f"ids are {_says(ids)}, and top_k is {top_k} in its metadata")
    if _digest(ids) != digest:
        refuse(f"sha256 of ids is {_digest(ids)}, and {digest} in its metadata")
    try:
        return Record(ids, layers, family, num_experts, sequences)
    except (ValueError, TypeError) as error:
        refuse(str(error).removeprefix("switchyard.transformers.Record: "))

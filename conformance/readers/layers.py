"""layers.py LAYER...

Reads layers, computes each step again from the step's inputs, and compares the bits. Needs only
Python 3.9. The code follows README.md alone, and computes f32 exactly, as fractions. It compares the
activation within 2^-20, because the activation's last bits depend on Switchyard's exp().
"""
import math
import struct
import sys
from fractions import Fraction

BYTES = ("_weights", "_codes")  # blocks of hexadecimal bytes; topk_weights are floats
E2M1_TWICE = (0, 1, 2, 3, 4, 6, 8, 12)


class Malformed(Exception):
    pass


def from_bits(word):
    return struct.unpack(">f", bytes.fromhex(word))[0]


def bits(value):
    return "7fc00000" if math.isnan(value) else struct.pack(">f", value).hex()


def f32(exact):
    """Rounds a fraction to the nearest float32; rounds ties to even."""
    d = float(exact)
    if Fraction(d) != exact and struct.pack(">d", d)[7] % 2 == 0:
        d = math.nextafter(d, math.inf if exact > Fraction(d) else -math.inf)  # rounds to odd
    return struct.unpack(">f", struct.pack(">f", d))[0]


def product(a, b):
    return f32(Fraction(a) * Fraction(b))


def fma(a, b, c):
    return f32(Fraction(a) * Fraction(b) + Fraction(c))


def read(text):
    layer = {}
    lines = iter(text.splitlines())
    if next(lines, "") != "switchyard-layer 1":
        raise Malformed('line 1 is not "switchyard-layer 1"')
    for line in lines:
        words = line.split()
        if words == ["end"]:
            return layer
        if len(words) == 2:
            layer[words[0]] = words[1] if words[0] == "layer" else int(words[1])
            continue
        key, rows, cols = words[0], int(words[1]), int(words[2])
        layer[key] = []
        for _ in range(rows):
            row = next(lines).split()
            if key == "topk_ids":
                row = [int(word) for word in row]
            elif key.endswith(BYTES) and key != "topk_weights":
                row = list(bytes.fromhex(row[0]))
            else:
                row = [from_bits(word) for word in row]
            if len(row) != cols:
                raise Malformed(f"{key}: a row has {len(row)} values, not {cols}")
            layer[key].append(row)
    raise Malformed("the layer has no \"end\"")


def signed(byte):
    return byte - 256 if byte > 127 else byte


def blocks(kind, row, scale):
    """Returns (scale, integer codes) for each block of a row of weights."""
    if kind == "int8":
        return [(scale[0], [signed(byte) for byte in row])]
    found, size = [], 18 if kind == "q4_0" else 17
    for at in range(0, len(row), size):
        block = row[at:at + size]
        nibbles = [byte & 15 for byte in block[-16:]] + [byte >> 4 for byte in block[-16:]]
        if kind == "q4_0":
            d = struct.unpack("<e", bytes(block[:2]))[0]
            codes = [nibble - 8 for nibble in nibbles]
        else:
            d = 2.0 ** (block[0] - 127) / 2
            codes = [E2M1_TWICE[n & 7] * (-1 if n & 8 else 1) for n in nibbles]
        found.append((d, codes))
    return found


def multiply(layer, name, expert, codes, scales):
    """Returns the product of a quantised row with all rows of an expert's weights."""
    kind, weights = layer["layer"], layer[name + "_weights"]
    rows = len(weights) // layer["num_experts"]
    x = [signed(byte) for byte in codes]
    out = []
    for r in range(expert * rows, (expert + 1) * rows):
        scale = layer.get(name + "_weight_scales", [None] * len(weights))[r]
        acc = 0.0
        for b, (dw, block) in enumerate(blocks(kind, weights[r], scale)):
            part = x[b * len(block):(b + 1) * len(block)]
            dot = f32(Fraction(sum(w * q for w, q in zip(block, part))))
            factor = product(dw, scales[b])
            acc = product(dot, factor) if kind == "int8" else fma(dot, factor, acc)
        out.append(acc)
    return out


def quantize(kind, row):
    """Returns the codes, as bytes, and the scales of a row."""
    group = len(row) if kind == "int8" else 32
    codes, scales = [], []
    for at in range(0, len(row), group):
        part = row[at:at + group]
        amax = max(abs(x) for x in part)
        scales.append(f32(Fraction(amax) / 127))
        inverse = f32(127 / Fraction(amax))
        codes += [round(product(x, inverse)) & 255 for x in part]  # ties to even
    return codes, scales


def check(layer):
    """Yields the name and the expected rows of each step."""
    kind, top_k = layer["layer"], layer["top_k"]
    ids = [expert for row in layer["topk_ids"] for expert in row]
    for name, floats in (("hidden", "hidden"), ("activated", "activated")):
        made = [quantize(kind, row) for row in layer[floats]]
        yield name + "_codes", [codes for codes, _ in made]
        yield name + "_scales", [scales for _, scales in made]
    for name in ("gate", "up", "down"):
        source, step = ("activated", 1) if name == "down" else ("hidden", top_k)
        yield name, [multiply(layer, name, expert, layer[source + "_codes"][p // step],
                              layer[source + "_scales"][p // step])
                     for p, expert in enumerate(ids)]
    output = []
    for t, weights in enumerate(layer["topk_weights"]):
        sums = [0.0] * layer["hidden_size"]
        for slot, weight in enumerate(weights):
            row = layer["down"][t * top_k + slot]
            sums = [fma(weight, x, acc) for x, acc in zip(row, sums)]
        output.append(sums)
    yield "output", output


def main(files):
    if not files:
        raise Malformed("usage: layers.py LAYER...")
    failed = False
    for file in files:
        layer = read(open(file).read())
        checked = 0
        for name, expected in check(layer):
            integers = name.endswith("_codes")
            for r, (got, row) in enumerate(zip(layer[name], expected)):
                same = got == row if integers else list(map(bits, got)) == list(map(bits, row))
                checked += len(row)
                if not same or len(layer[name]) != len(expected):
                    print(f"{file}: {name}: row {r} differs: {got}, expected {row}")
                    failed = True
        for gates, ups, results in zip(layer["gate"], layer["up"], layer["activated"]):
            for gate, up, result in zip(gates, ups, results):
                exact = gate / (1 + math.exp(-gate)) * up
                if abs(result - exact) > 2.0 ** -20 * abs(exact):
                    print(f"{file}: activated: {result}, expected {exact}")
                    failed = True
        print(f"{file}: {checked} values compared bit by bit")
    return int(failed)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (Malformed, OSError, ValueError, StopIteration) as failure:
        print(f"layers.py: {failure}", file=sys.stderr)
        sys.exit(2)

# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""The targets of the kernels' speed, as data: a line of TARGETS each.

Kernels and shapes are the benchmark's names. "{a,b}" stands for either, each a
target of its own; "*" for anything, as many targets as there are such shapes. A
name that the benchmark no longer has is "not run" in the report, not left out.

Contenders are the benchmark's, or
    "best"           the best ISA of the machine
    "AVX-512"        the best of its AVX-512 ISAs; without one, not run
    "fastest probe"  of all contenders called probe or probe:...
with the types of the rows, unless they are f32, behind an "@": "AVX2@bf16".
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Ratio:
    """The time of one over that of another, at the same shape."""
    one: str
    other: str


@dataclasses.dataclass(frozen=True)
class Ns:
    """ns per unit (row, pair, ...), or per call."""
    contender: str
    per_call: bool = False


@dataclasses.dataclass(frozen=True)
class Above:
    """How many ns per unit one takes longer than another."""
    one: str
    other: str


@dataclasses.dataclass(frozen=True)
class SpeedUp:
    """The time on one thread over that on two. Where the probe gains more than
    2 x, from a second cache, divided by half of what it gains."""
    contender: str


@dataclasses.dataclass(frozen=True)
class Slowdown:
    """The time on two threads over that on one."""
    contender: str


@dataclasses.dataclass(frozen=True)
class WorstShape:
    """The largest ratio of a shape's time per unit to another's: of each pair,
    put in place of the target's "@"."""
    contender: str
    pairs: tuple


@dataclasses.dataclass(frozen=True)
class WorstRow:
    """The largest ratio of the best ISA's time to the fastest contender's that
    does the same work, over all shapes, EXCEPTIONS left out."""


@dataclasses.dataclass(frozen=True)
class Target:
    kernel: str
    shape: str
    figure: object
    bound: float
    text: str
    at_least: bool = False
    # Of a "*", those shapes whose call takes the figure's contender, on one
    # thread, from the first to below the second number of us.
    serial_us: tuple = ()


# Where a contender does less and is not compared: kernel, shape, contender.
# A token's pairs stored by a loop that writes no offsets and checks nothing.
EXCEPTIONS = (("bucket_*", "*/T=1/*", "engine"),)

KERNELS = ("route", "route_unnormalised", "bucket_packed",
           "bucket_packed_row_index", "bucket_strided",
           "bucket_strided_natural", "gather", "activate", "combine",
           "combine_indexed", "quantize")

# Its rows on two threads count among theirs.
ON_THREADS = "threads"

_SOFTMAX = Ratio("AVX-512", "onednn:softmax")
_AVX2 = Ratio("AVX2", "AVX-512")
_ODD_EXPERTS = tuple((f"E={odd}", f"E={power}") for odd, power in (
    (60, 64), (72, 64), (160, 128), (288, 256), (384, 512), (896, 1024)))
_HARD_ROWS = tuple((hard, "random") for hard in (
    "all_equal", "sorted_up", "sorted_down", "two_values", "spread_over_200"))
_ROUTERS = "{E=8/k=2,E=16/k=2,E=64/k=8,E=128/k=8,E=256/k=8}/"
_RECIPES = "E={128/k=8,256/k=8,384/k=8,512/k=10,896/k=16}/"
_BUCKETS = "T={512,4096}/{uniform,zipf}"
_COMBINES = "T={1,64,512}/H={2048,4096,7168}"
_FORMS = ("{residual_multiplier,alpha_beta,plus_one,block_norm,vectors}/"
          "T={64,512}/H=4096")

_ISAS = ("AVX-512", "AVX2")
# What engines feed their experts' GEMMs.
_QUANTISED = ("i8", "q8_0", "f8e4m3")

TARGETS = (
    # First in every row.
    *(Target(kernel, "", WorstRow(), 1.03,
             "every row first or within 3 %: {isa} / the fastest peer, worst")
      for kernel in (*KERNELS, ON_THREADS)),

    # The router.
    Target("route", "E={8/k=2,64/k=8}/T={512,4096}", _SOFTMAX, 1.0,
           "renormalised, AVX-512 / oneDNN's softmax alone"),
    Target("route", "E=128/k=8/T={512,4096}", _SOFTMAX, 0.8,
           "renormalised, AVX-512 / oneDNN's softmax alone"),
    Target("route", "E=256/k=8/T={512,4096}", _SOFTMAX, 0.65,
           "renormalised, AVX-512 / oneDNN's softmax alone"),
    Target("route", "E=512/k=10/T={512,4096}", _SOFTMAX, 0.7,
           "renormalised, AVX-512 / oneDNN's softmax alone"),
    Target("route_unnormalised",
           "E={8/k=2,64/k=8,128/k=8,256/k=8,512/k=10}/T=512", _SOFTMAX, 1.05,
           "not renormalised, AVX-512 / oneDNN's softmax alone"),
    Target("route", "E={64,128,256}/k=8/T={512,4096}", _AVX2, 1.5,
           "AVX2 / AVX-512"),
    # 115 ns at 3.55 GHz.
    Target("route", "E=128/k=8/T=1", _SOFTMAX, 0.5,
           "one token, rows rotating, AVX-512 / oneDNN's softmax alone"),
    Target("route", "E=128/k=8/T=1", _AVX2, 1.2, "one token, AVX2 / AVX-512"),
    *(Target("route_experts", f"k={k}/@", WorstShape(isa, _ODD_EXPERTS), 1.5,
             "any number of experts, {isa}, ns per expert / at the nearest "
             "power of two, worst")
      for isa in ("AVX-512", "AVX2") for k in (1, 2, 4, 8, 16, 32)),
    *(Target("route_rows", shape + "/@", WorstShape(isa, _HARD_ROWS), 4.0,
             "hard rows, {isa} / a random row, worst")
      for isa in ("AVX-512", "AVX2")
      for shape in ("E=8/k=2", "E=64/k=8", "E=128/k=4", "E=128/k=8",
                    "E=160/k=8", "E=256/k=8", "E=384/k=8", "E=512/k=10")),

    # Its other recipes, by softmax of the same rows.
    *(Target("route_" + recipe, shape, Ratio(isa, isa + ":softmax"), bound,
             f"{text}, {isa} / plain softmax")
      for recipe, shape, bound, text in (
          ("sigmoid", _RECIPES + "T=512", 1.3, "sigmoid"),
          ("sigmoid_bias", _RECIPES + "T=512", 1.3, "sigmoid with a bias"),
          ("softmax_bias", _RECIPES + "T=512", 1.3, "softmax with a bias"),
          ("grouped", "E=256/k=8/T=512", 1.6, "sigmoid, bias, 4 of 8 groups"),
          ("sqrt_softplus", _RECIPES + "T=512", 2.5,
           "sqrt(softplus) with a bias"),
          ("selected", _RECIPES + "T=512", 1.0, "softmax of the selected"),
          ("sigmoid_bias", "E={128,256,384}/k=8/T=1", 2.0,
           "one token, sigmoid with a bias"),
          ("grouped", "E=256/k=8/T=1", 2.0,
           "one token, sigmoid, bias, 4 of 8 groups"))
      for isa in _ISAS),

    # Buckets.
    Target("bucket_{packed,strided}", "E={8,16}/k=2/" + _BUCKETS, Ns("best"),
           1.0, "ns a pair"),
    Target("bucket_{packed,strided}", "E={64,128,256}/k=8/" + _BUCKETS,
           Ns("best"), 1.25, "ns a pair"),
    Target("bucket_strided", "E=128/k=8/T=1/uniform", Ns("best", True), 25.0,
           "one token, ns a call"),
    Target("bucket_packed", "E=128/k=8/T=1/uniform", Ns("best", True), 60.0,
           "one token with offsets and arguments, ns a call"),
    Target("bucket_packed", _ROUTERS + "{T=1/uniform," + _BUCKETS + "}",
           Ratio("best", "plain"), 0.9, "{isa} / a textbook counting sort"),
    Target("bucket_strided_natural", _ROUTERS + _BUCKETS, Ns("best"), 1.5,
           "stride T*k, ns a pair"),
    Target("bucket_strided_natural", _ROUTERS + _BUCKETS,
           Ratio("best", "plain"), 1.0, "stride T*k, {isa} / an append loop"),
    Target("bucket_aligned", "E={64,128,256}/k=8/" + _BUCKETS,
           Ratio("best", "plain"), 1.0,
           "blocks of 64, {isa} / a textbook counting sort"),
    Target("map_pairs", "E={64,128,256}/k=8/" + _BUCKETS,
           Ratio("best", "plain"), 1.1, "to 8 ranks, {isa} / plain loops"),
    # Plain loops branch on what a token's first pair is, which a predictor
    # learns of 512 tokens that it sees again and again.
    Target("map_tokens", "E={64,128,256}/k=8/" + _BUCKETS,
           Ratio("best", "plain"), 1.5, "to 8 ranks, {isa} / plain loops"),
    Target("work_list", "E={64,128,256}/k=8/" + _BUCKETS, Ns("best"), 40.0,
           "64 workers, ns a tile"),

    # SiLU(gate) * up.
    Target("activate", "{8x768,64x2048}", Ratio("AVX-512", "fastest probe"),
           1.3, "in cache, AVX-512 / load, divide, store"),
    Target("activate", "{8x768,64x2048}", Ratio("AVX-512", "ggml"), 0.97,
           "in cache, AVX-512 / ggml"),
    Target("activate", "{8x768,64x2048}", _AVX2, 1.5,
           "in cache, AVX2 / AVX-512"),
    Target("activate", "4096x{768,1536}", Ratio("best", "fastest probe"), 1.05,
           "beyond the caches, {isa} / the better probe"),

    # Other activations, by SiLU on the same rows.
    *(Target("activate_{limited,gelu,gelu_tanh,relu2,swiglu_oai,situ}",
             "{8x768,64x2048}", Ratio(f"{isa}{types}", f"{isa}:silu{types}"),
             1.5, f"in cache, {isa}{types} / SiLU")
      for types in ("", "@bf16") for isa in _ISAS),

    # The weighted sum.
    Target("combine{,_indexed}", _COMBINES, Ratio("best", "fastest probe"),
           1.05, "{isa} / the fastest probe"),
    Target("combine_form", _FORMS, Ratio("best", "fastest probe"), 1.05,
           "{isa} / the fastest probe"),
    Target("hyper", "{behind_a_block,before_a_block,both}/T={64,512}/H=4096",
           Ratio("best", "fastest probe"), 1.05, "{isa} / the fastest probe"),

    # Types: half the bytes, and quantised in the pass that is made anyway.
    *(Target(kernel, shapes, Ratio(f"{isa}@{types}", isa), bound,
             f"{where}, {isa}, {types} / f32")
      for kernel, where, shapes, bound in (
          ("activate", "beyond the caches", "4096x1536", 0.55),
          ("combine{,_indexed}", "beyond the caches", "T=512/H={4096,7168}",
           0.55),
          ("activate", "in cache", "{8x768,64x2048}", 1.1),
          ("combine{,_indexed}", "in cache", "T=1/H={2048,7168}", 1.1))
      for types in ("bf16", "f16") for isa in _ISAS),
    # A copy, whatever 16 bits are.
    *(Target("gather", shapes, Ratio(f"{isa}@bf16", isa), bound,
             f"{where}, {isa}, bf16 / f32")
      for where, shapes, bound in (
          ("beyond the caches", "T=512/H={2048,4096,7168}", 0.55),
          ("in cache", "T=1/H={2048,7168}", 1.1))
      for isa in _ISAS),
    *(Target("route", "E={64/k=8,128/k=8,256/k=8,512/k=10}/T=512",
             Ratio(f"{isa}@bf16", isa), 1.0, f"{isa}, bf16 logits / f32")
      for isa in _ISAS),
    *(Target("gather", "T=512/H=2048",
             Ratio(f"{isa}@{source}-{types}",
                   f"fastest probe@{source}-{types}"), 1.1,
             f"{source} to {types} once, {isa} / tokens read once, packed rows "
             "copied")
      for types in _QUANTISED for source in ("bf16", "f32") for isa in _ISAS),
    *(Target("gather", "T=512/H=2048",
             Ratio(f"engine@{source}-{types}", f"{isa}@{source}-{types}"), 4.0,
             f"{source} to {types}, rows packed, then each converted / {isa}",
             at_least=True)
      for types in _QUANTISED for source in ("bf16", "f32") for isa in _ISAS),
    *(Target("activate", "{8x768,64x2048}",
             Ratio(f"{isa}@{source}-{types}", isa), 1.25,
             f"in cache, {isa}, {source} to {types} / f32")
      for types in _QUANTISED for source in ("bf16", "f32") for isa in _ISAS),
    *(Target("combine", "T={1,64,512}/H=4096",
             Ratio(f"{isa}@{source}-i8", f"{isa}@{source}".replace("@f32", "")),
             1.1, f"{isa}, {source}, normed rows to i8 / not quantised")
      for source in ("bf16", "f32") for isa in _ISAS),

    # Two threads.
    Target("threads", "*", Slowdown("best"), 1.05,
           "below 30 us of serial work not shared out: two threads / one",
           serial_us=(0.0, 30.0)),
    Target("threads", "*", SpeedUp("best"), 1.6,
           "30 to 100 us of serial work, speed-up", at_least=True,
           serial_us=(30.0, 100.0)),
    Target("threads", "*", SpeedUp("best"), 1.85,
           "100 us of serial work or more, speed-up", at_least=True,
           serial_us=(100.0, float("inf"))),
    Target("threads_idle", "*", Slowdown("best"), 1.15,
           "after 1 ms idle, two threads / one"),

    # The device layer.
    Target("device", "empty", Ns("device"), 60.0,
           "1000 empty dispatches in a buffer, ns each"),
    Target("device", "chains=100", Above("device", "direct"), 500.0,
           "100 chains in a buffer, ns each above direct calls"),
    Target("device", "chains=1", Above("device", "direct"), 3000.0,
           "one chain with commit and wait, ns above direct calls"),
    Target("kernel", "{streaming,weighted_sum,row_reduction}",
           Ratio("checked", "unchecked"), 20.0, "checked / unchecked"),
    Target("kernel", "{streaming,weighted_sum,row_reduction}",
           Ratio("metal", "unchecked"), 30.0, "as .metal text / in kernel.h"),
    Target("kernel", "{streaming,weighted_sum,row_reduction}",
           Ratio("metal_checked", "metal"), 20.0,
           "as .metal text, checked / unchecked"),
)

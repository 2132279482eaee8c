# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs models with random weights through llama.cpp with and without the plug-in.

    SWITCHYARD_GGML_BUILD=BUILD python -m unittest discover -s integrations/ggml/tests

BUILD is a build folder configured with -DSWITCHYARD_GGML_TESTS=ON. Python needs numpy, gguf and
the llama_cpp for which BUILD was built.
"""

import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import gguf
import numpy as np

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ["SWITCHYARD_GGML_BUILD"])
sys.path.insert(0, str(HERE))
import make_model  # noqa: E402

# The numbers of tokens of the batches: two long ones, a short one and two single tokens.
BATCHES = (64, 200, 7, 1, 1)
# The error of logits is relative to their standard deviation. The exact result is computed by the
# same model with the experts' values stored as f32. Stock llama.cpp rounds operands to bf16 or f16.
# On some CPUs the plug-in does not round them, and is then as far from stock as stock is from the
# exact result. The plug-in's error may be OF_STOCKS_ERROR times stock's error, plus NO_ERROR.
OF_STOCKS_ERROR = 1.5
NO_ERROR = 1e-3
# The bound of the difference from stock llama.cpp if the plug-in runs only router and sum. Some
# values are rounded to another neighbour, and the difference is up to 0.042 if rows become q8_k.
OF_STOCK = 0.06
# The share of tokens that are not compared, because two experts are nearly tied in the router, so
# that a token may get either expert.
TIES = 0.02

# The environments for a run with all instructions of the CPU, and with AVX2.
AVX2 = {"SWITCHYARD_ISA": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
CPUS = ({}, AVX2)
QUANTISED = ("q8_0", "q4_0", "mxfp4", "q4_K", "q6_K")
# The environments for weights as they lie in the mapped file, and for weights
# that are packed while they are loaded.
AS_STORED = {"AS_STORED": "1"}
PACKED = {}


def batches_as_stored(kind, **cpu):
    """Returns how many of BATCHES the plug-in claims if weights of this kind are as stored: all, or
    all but the single tokens with q8_0, and with q4_K and q6_K on a CPU without AVX-512. With packed
    weights it would claim all batches."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    avx512 = "avx512dq" in flags and "ONEDNN_MAX_CPU_ISA" not in {**os.environ, **cpu}
    takes_one = not (kind in ("q8_0", "mixed") or "_K" in kind and not avx512)
    return sum(tokens > 1 or takes_one for tokens in BATCHES)


def shape(kind):
    """Returns the number of experts, and the columns of a layer's input and of the activation."""
    s = make_model.sizes_for(kind)
    return f"{s['experts']} x {s['hidden']} x {s['intermediate']}"


def error(logits, exact):
    """Returns the largest error of all tokens, except the share TIES with the largest errors."""
    return np.quantile(abs(logits - exact).max(axis=1), 1 - TIES) / exact.std()


class PluginTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.stock = {}

    def model(self, family, kind):
        path = pathlib.Path(self.folder.name, f"{family}-{kind}.gguf")
        if not path.exists():
            make_model.FAMILIES[family](str(path), kind)
        return path

    def model_files(self, family, kind):
        """Makes a model in several files, and returns the path that split_path() takes."""
        path = pathlib.Path(self.folder.name, f"{family}-{kind}.gguf")
        make_model.FAMILIES[family](str(path), kind)
        return path

    def start(self, model, *arguments, plugin=None, **environment):
        """Runs run_model.py."""
        # Threads wait passively, because on a busy machine spinning threads
        # would delay the threads they wait for.
        variables = dict(os.environ, SWITCHYARD_GGML_REPORT="1", OMP_WAIT_POLICY="passive",
                         **environment)
        variables.pop("GGML_BACKEND_PATH", None)
        if plugin is not None:
            variables["GGML_BACKEND_PATH"] = str(BUILD / plugin)
        return subprocess.run(
            [sys.executable, HERE / "run_model.py", model, *map(str, arguments)],
            env=variables, stderr=subprocess.PIPE, text=True, check=False, timeout=120)

    def run_model(self, model, plugin=None, batches=BATCHES, **environment):
        """Returns the logits, and the text that was written to stderr."""
        out = pathlib.Path(self.folder.name, "logits.npy")
        done = self.start(model, "logits", out, *batches, plugin=plugin, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return np.load(out), done.stderr

    def logits_of_stock(self, model, batches=BATCHES, as_stored=False):
        key = model, batches, as_stored
        if key not in self.stock:
            way = AS_STORED if as_stored else {}
            self.stock[key], said = self.run_model(model, batches=batches, **way)
            self.assertNotIn("switchyard", said)
        return self.stock[key]

    def compare(self, family, kind, batches=BATCHES, **environment):
        """Runs the plug-in and compares logits. Returns two parts of the plug-in's report: a
        dictionary with the number of calls of each kind, and the lines about products that were
        left to ggml."""
        model = self.model(family, kind)
        expected = self.logits_of_stock(model, batches, "AS_STORED" in environment)
        exact = self.logits_of_stock(self.model(family, kind + " as f32"), batches)
        logits, said = self.run_model(model, "libggml-switchyard.so", batches, **environment)
        self.assertTrue(np.isfinite(exact).all())
        self.assertFalse(np.isnan(logits).any())
        done = {m[1].strip(): int(m[2]) for m in re.finditer(
            r"^switchyard: (.*?) +\d+ +(\d+) +\d+ +\d+ +[\d.]+ +[\d.]+$", said, re.M)}
        self.assertLessEqual(error(logits, exact),
                             OF_STOCKS_ERROR * error(expected, exact) + NO_ERROR)
        if not any("experts" in what or "matrix" in what for what in done):
            self.assertLessEqual(error(logits, expected), OF_STOCK)
        return done, re.findall(r"^switchyard: left to ggml: (.*)$", said, re.M)

    def test_experts_of_qwen3(self):
        # The model has three layers, and two batches are long enough for the plug-in.
        for kind, cpu in itertools.product(("bf16", "f16"), CPUS):
            done, declined = self.compare("qwen3moe", kind, **cpu)
            self.assertEqual(done, {
                "router softmax, 4 of 16": 6,
                f"experts {kind} 16 x 128 x 96, sum of 4 + residual + norm": 6})
            self.assertEqual(declined, [f"9 products of {kind} in CPU_Mapped: few tokens"])

    def test_experts_of_gpt_oss(self):
        # In the last layer, llama.cpp drops rows without logits before the norm.
        for kind, cpu in itertools.product(("bf16", "f16"), CPUS):
            done, _ = self.compare("gpt_oss", kind, **cpu)
            self.assertEqual(done, {
                "router softmax of selected, 4 of 16": 6,
                f"experts {kind} 16 x 128 x 96 + bias, sum of 4 + residual": 2,
                f"experts {kind} 16 x 128 x 96 + bias, sum of 4 + residual + norm": 4})

    def test_experts_of_deepseek2(self):
        # The first layer is dense; the shared expert comes before the residual.
        for (family, kind), cpu in itertools.product(
                (("deepseek2", "bf16"), ("deepseek2", "f16"), ("deepseek2_merged", "bf16")), CPUS):
            done, _ = self.compare(family, kind, **cpu)
            self.assertEqual(done, {"router sigmoid + bias, 4 of 16": 4,
                                    f"experts {kind} 16 x 128 x 96, sum of 4": 4})

    def test_groups_of_experts_are_left_alone(self):
        # The plug-in claims the nodes before the selection of groups, because ggml asks about the
        # nodes of this selection only later.
        done, _ = self.compare("deepseek2_groups", "bf16")
        self.assertEqual(done, {"of no chain, by the CPU backend": 4,
                                "experts bf16 16 x 128 x 96, sum of 4": 4})

    def test_quantised_experts(self):
        # The model has three layers, and there are five batches, two of them
        # single tokens.
        for kind, (place, way) in itertools.product(
                QUANTISED, (("", AS_STORED), (" packed", PACKED))):
            done, declined = self.compare("qwen3moe", kind, **way)
            calls = 3 * (5 if way is PACKED else batches_as_stored(kind))
            self.assertEqual(done, {
                "router softmax, 4 of 16": calls,
                f"experts {kind}{place} {shape(kind)}, sum of 4 + residual + norm": calls})
            self.assertEqual(declined, [] if calls == 15 else [
                f"9 products of {kind} in CPU_Mapped: few tokens"])

    def test_quantised_experts_on_avx2(self):
        for kind, way in (("q8_0", AS_STORED), ("q4_K_M", AS_STORED), ("q4_0", PACKED),
                          ("q4_K_M", PACKED)):
            done, _ = self.compare("qwen3moe", kind, **way, **AVX2)
            self.assertEqual(sum(n for what, n in done.items() if what.startswith("experts")),
                             3 * (5 if way is PACKED else batches_as_stored(kind, **AVX2)))

    def test_quantised_experts_of_other_families(self):
        # These families have biases, gpt-oss's activation, and one tensor for
        # gate and up.
        for family, (kind, place, way) in itertools.product(
                ("gpt_oss", "deepseek2", "deepseek2_merged"),
                (("mxfp4", "", AS_STORED), ("q4_0", " packed", PACKED))):
            done, declined = self.compare(family, kind, **way)
            calls = {what: n for what, n in done.items() if what.startswith("experts")}
            self.assertEqual(sum(calls.values()), 15 if family == "gpt_oss" else 10)
            for what in calls:
                self.assertTrue(what.startswith(f"experts {kind}{place} 16 x 128 x 96"), what)
            self.assertEqual(declined, [])

    def test_layers_whose_products_have_several_formats(self):
        tail = f"{shape('q4_K')}, sum of 4 + residual + norm"
        for place, way in (("", AS_STORED), (" packed", PACKED)):
            done, declined = self.compare("qwen3moe", "q4_K_M", **way)
            batches = 5 if way is PACKED else batches_as_stored("q4_K")
            self.assertEqual(done, {"router softmax, 4 of 16": 3 * batches,
                                    f"experts q4_K{place} and q6_K{place} {tail}": 2 * batches,
                                    f"experts q4_K{place} {tail}": batches})
            self.assertEqual(declined, [] if batches == 5 else [
                f"{n} products of {kind} in CPU_Mapped: few tokens"
                for n, kind in ((7, "q4_K"), (2, "q6_K"))])
            batches = 5 if way is PACKED else batches_as_stored("mixed")
            done, declined = self.compare("qwen3moe", "mixed", **way)
            # Gate and up of the last layer read rows of two formats.
            self.assertEqual(
                done[f"experts q4_K{place} and q6_K{place} and q8_0{place} {tail}"], batches)
            self.assertEqual(
                done[f"experts q8_0{place} and q4_0{place} and q6_K{place} {tail}"], batches)
            self.assertEqual(
                sum(n for what, n in done.items() if what.startswith("experts")), 2 * batches)
            self.assertEqual(done.get("one product of experts q4_0 packed", 0),
                             0 if way is AS_STORED else 10)

    def test_layers_of_a_type_that_no_product_takes(self):
        # If weights are as stored, ggml runs the whole layer, because two of
        # its three products gain less than a split of the graph costs.
        # So it also computes the routers of batches of less than 32 tokens.
        done, declined = self.compare("qwen3moe", "q5_K down", **AS_STORED)
        self.assertEqual(done, {"router softmax, 4 of 16": 6,
                                "combine sum of 4 + residual + norm": 6})
        # llama.cpp first asks about a batch of one token, and about each layer's
        # down product last.
        few = ["6 products of q4_K in CPU_Mapped: few tokens"]
        self.assertEqual(declined, [
            "6 products of q4_K in CPU_Mapped: another product of the layer is left to ggml",
            *(few if batches_as_stored("q4_K") < 5 else []),
            "3 products of q5_K in CPU_Mapped: no product here takes this type"])
        # The plug-in computes the packed products of these layers alone, because
        # no other backend can read packed weights.
        done, declined = self.compare("qwen3moe", "q5_K down")
        self.assertEqual(done["one product of experts q4_K packed"], 30)
        self.assertEqual(len(declined), 1)
        self.assertRegex(declined[0], "^3 products of q5_K in CPU.*: no product here takes")

    def test_one_expert_for_each_token(self):
        # Such a layer has no sum of experts, so it matches no pattern.
        done, declined = self.compare("one_expert", "q4_0", **AS_STORED)
        self.assertNotIn("of no chain, by the CPU backend", done)
        self.assertEqual(declined, ["9 products of q4_0 in CPU_Mapped: one expert for each token, so "
                                    "there is no sum"])
        done, _ = self.compare("one_expert", "q4_0")
        self.assertEqual(done["one product of experts q4_0 packed"], 45)

    def test_packed_products_one_by_one(self):
        # With a callback for each node, ggml computes nodes one by one, so the plug-in finds no
        # chain.
        for kind in ("q8_0", "q4_K_M"):
            done, _ = self.compare("qwen3moe", kind, EVERY_NODE="1")
            self.assertEqual(
                sum(n for what, n in done.items() if what.startswith("one product")), 45)

    def test_experts_with_adapters(self):
        model, lora = self.model("qwen3moe", "q8_0"), self.model("qwen3moe_lora", "q8_0")
        stock, _ = self.run_model(model, LORA=str(lora))
        effect = error(self.logits_of_stock(model), stock)
        for way, product in ((AS_STORED, None), (PACKED, "one product of experts q8_0 packed")):
            logits, said = self.run_model(model, "libggml-switchyard.so", LORA=str(lora), **way)
            # The error is 0.07 of the effect on AVX-512 (0.05 on AVX2), because stock rounds rows in
            # another way, so that some tokens choose other experts.
            self.assertLessEqual(error(logits, stock), effect / 10)
            if product:
                self.assertIn(product, said)
                # The plug-in claims the adapter's products, because ggml would copy their weights
                # in each graph.
                self.assertIn("of no chain, by the CPU backend", said)

    def test_matrices(self):
        """Checks models of which all matrices are quantised. Each of the five batches has four products
        of attention in each of three layers, and the product with the vocabulary."""
        for family, kind in itertools.product(("qwen3moe_all", "gpt_oss_all"), (*QUANTISED, "q4_K_M")):
            done, declined = self.compare(family, kind)
            self.assertEqual(done[f"matrix {kind.removesuffix('_M')} packed"], 65)
            self.assertEqual(
                sum(n for what, n in done.items() if what.startswith("experts")), 15)
            self.assertEqual(declined, [])
        # A dense layer, and shared experts. q4_K does not divide some columns.
        for kind, calls in (("q4_0", {"q4_0": 125}), ("q4_K", {"q4_K": 80, "q8_0": 45})):
            done, _ = self.compare("deepseek2_all", kind)
            self.assertEqual({what: n for what, n in done.items() if "matrix" in what},
                             {f"matrix {name} packed": n for name, n in calls.items()})
        for way in (AVX2, {"EVERY_NODE": "1"}):
            done, _ = self.compare("qwen3moe_all", "q4_0", **way)
            self.assertEqual(done["matrix q4_0 packed"], 65)

    def test_matrices_as_stored(self):
        for family, kind in (("qwen3moe_all", "q4_0"), ("gpt_oss_all", "q8_0"),
                             ("qwen3moe_all", "q4_K"), ("llama_all", "mxfp4")):
            done, _ = self.compare(family, kind, **AS_STORED)
            matrices = 7 if family == "llama_all" else 4
            self.assertEqual(done[f"matrix {kind}"],
                             batches_as_stored(kind) * (3 * matrices + 1))

    def test_matrices_left_to_ggml(self):
        for way in ({}, AS_STORED):
            done, _ = self.compare("qwen3moe_all", "q4_0", SWITCHYARD_GGML_DENSE="0", **way)
            self.assertEqual([what for what in done if "matrix" in what], [])
            self.assertEqual(
                sum(n for what, n in done.items() if what.startswith("experts")), 15)
        # On a CPU without AVX2, ggml multiplies experts, too.
        for way in ({}, AS_STORED):
            done, _ = self.compare("qwen3moe_all", "q4_0", ONEDNN_MAX_CPU_ISA="SSE41", **way)
            self.assertEqual(done, {"router softmax, 4 of 16": 6,
                                    "combine sum of 4 + residual + norm": 6})

    def test_a_wrong_isa_leaves_everything_to_ggml(self):
        model = self.model("qwen3moe_all", "q4_0")
        for way in ({}, AS_STORED):
            stock, _ = self.run_model(model, **way)
            logits, _ = self.run_model(model, "libggml-switchyard.so", SWITCHYARD_ISA="AVX99", **way)
            np.testing.assert_array_equal(logits, stock)

    def test_matrices_with_adapters(self):
        model = self.model("qwen3moe_all", "q8_0")
        lora = str(self.model("qwen3moe_lora_dense", "q8_0"))
        stock, _ = self.run_model(model, LORA=lora)
        effect = error(self.logits_of_stock(model), stock)
        logits, said = self.run_model(model, "libggml-switchyard.so", LORA=lora)
        self.assertLessEqual(error(logits, stock), effect / 10)
        self.assertIn("matrix q8_0 packed", said)
        self.assertIn("of no chain, by the CPU backend", said)

    def test_packed_tensors_give_their_bytes_back(self):
        def run(count, **variables):
            return json.loads(subprocess.run(
                [BUILD / "packing_test", "1", count], stdout=subprocess.PIPE, check=True,
                env=dict(os.environ, OMP_WAIT_POLICY="passive", **variables)).stdout)

        found = run("300")
        self.assertEqual(found["differing"], [])
        self.assertEqual(set(found["types"]), {*QUANTISED, "f16"})
        # A GPU of the test takes 32 tokens and more. It cannot read packed weights, so weights are
        # packed only if the user asks for it. Only packed products ignore a request for another
        # precision, because no other backend can read their weights.
        self.assertEqual(found["with_gpu"], ["stored MUL_MAT 31", "stored MUL_MAT_ID 31"])
        packed = run("1", SWITCHYARD_GGML_PACK="1")["with_gpu"]
        self.assertIn("packed MUL_MAT_ID 64", packed)
        self.assertEqual({product for product in packed if "precision" in product},
                         {f"packed MUL_MAT{kind} {tokens} in another precision"
                          for kind in ("", "_ID") for tokens in (31, 64)})

    def test_packed_models_are_saved_as_they_were(self):
        for kind in ("q8_0", "q4_K_M", "mxfp4"):
            model = self.model("qwen3moe_all", kind)
            out = pathlib.Path(self.folder.name, "saved.gguf")
            done = self.start(model, "save", out, plugin="libggml-switchyard.so")
            self.assertEqual(done.returncode, 0, done.stderr)
            saved = {t.name: t for t in gguf.GGUFReader(out).tensors}
            for tensor in gguf.GGUFReader(model).tensors:
                self.assertEqual(tensor.tensor_type, saved[tensor.name].tensor_type)
                np.testing.assert_array_equal(tensor.data, saved[tensor.name].data, tensor.name)

    def test_packed_models_however_they_are_loaded(self):
        expected, _ = self.run_model(self.model("qwen3moe", "q4_0"), "libggml-switchyard.so")
        split = make_model.split_path(self.model_files("qwen3moe_split", "q4_0"))
        for model, way in ((self.model("qwen3moe", "q4_0"), {"NO_MMAP": "1"}),
                           (split, {}), (split, {"NO_MMAP": "1"}),
                           # Weights as stored give the same bits.
                           (split, AS_STORED)):
            logits, said = self.run_model(model, "libggml-switchyard.so", **way)
            np.testing.assert_array_equal(logits, expected)
            self.assertIn("experts q4_0 16" if way is AS_STORED else "experts q4_0 packed", said)

    def test_weights_of_any_bytes(self):
        # Depending on the values, the model gives an error or NaN, but never crashes.
        for family, kind, way in itertools.product(("qwen3moe", "qwen3moe_all"), QUANTISED,
                                                   (AS_STORED, PACKED)):
            model = self.model(family, kind + make_model.ANY_BYTES)
            _, said = self.run_model(model, "libggml-switchyard.so", **way)
            self.assertIn(f"experts {kind}", said)

    def test_truncated_files_are_refused(self):
        model = self.model("qwen3moe", "q4_K_M")
        size = model.stat().st_size
        cut = pathlib.Path(self.folder.name, "cut.gguf")
        for left, way in itertools.product((size - 1, size // 2, 1000, 0), (AS_STORED, PACKED)):
            cut.write_bytes(model.read_bytes()[:left])
            done = self.start(cut, "logits", cut.with_suffix(".npy"), 8,
                              plugin="libggml-switchyard.so", **way)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("cannot load", done.stderr)

    def test_single_tokens_are_left_alone(self):
        model = self.model("qwen3moe", "bf16")
        expected, _ = self.run_model(model, batches=(1,) * 8)
        logits, said = self.run_model(model, "libggml-switchyard.so", batches=(1,) * 8)
        np.testing.assert_array_equal(logits, expected)
        self.assertNotIn("experts bf16", said)

    def test_experts_with_little_to_do_are_left_alone(self):
        # The batches have 2.5 (token, slot) pairs for each expert, then 5 and 16.
        few = "few tokens for each expert on this CPU"
        left = {"router softmax, 4 of 64": 3, "combine sum of 4 + residual + norm": 3}
        taken = {"router softmax, 4 of 64": 3,
                 "experts f16 64 x 128 x 96, sum of 4 + residual + norm": 3}
        for kind, tokens, cpu, calls in (("bf16", 40, {}, left), ("f16", 80, AVX2, left),
                                         ("f16", 256, AVX2, taken)):
            done, declined = self.compare("many_experts", kind, batches=(tokens,), **cpu)
            self.assertEqual(done, calls)
            self.assertEqual(f"9 products of {kind} in CPU_Mapped: {few}" in declined,
                             calls is left)

    def test_threads_do_not_change_bits(self):
        for family, kind in (("qwen3moe", "bf16"), ("qwen3moe_all", "q4_0")):
            model = self.model(family, kind)
            # Compares no single tokens, because ggml's attention of single tokens
            # changes its bits with the number of threads.
            one, _ = self.run_model(model, "libggml-switchyard.so", BATCHES[:2], THREADS="1")
            three, _ = self.run_model(model, "libggml-switchyard.so", BATCHES[:2], THREADS="3")
            np.testing.assert_array_equal(one, three)

    def test_nodes_one_by_one_are_computed_all_the_same(self):
        # With a callback for each node, ggml computes nodes one by one, so the plug-in finds no
        # chain.
        done, _ = self.compare("gpt_oss", "bf16", EVERY_NODE="1")
        self.assertEqual(list(done), ["of no chain, by the CPU backend"])

    def test_model_without_experts(self):
        for kind in ("q4_0", "q4_K"):
            done, _ = self.compare("llama_all", kind)
            self.assertEqual(done, {f"matrix {kind} packed": 5 * (3 * 7 + 1)})
        # Only matrices in the quantised formats are packed.
        model = self.model("llama", "bf16")
        logits, said = self.run_model(model, "libggml-switchyard.so")
        np.testing.assert_array_equal(logits, self.logits_of_stock(model))
        self.assertNotIn("switchyard:", said)

    def test_views_of_any_form_give_the_numbers_of_stock(self):
        # Tests 2,000 random graphs of a layer. One view in sixteen is of a kind
        # that llama.cpp does not make.
        done = subprocess.run([BUILD / "views_fuzz", "1", "2000"], stdout=subprocess.PIPE,
                              env=dict(os.environ, OMP_WAIT_POLICY="passive"), check=True)
        found = json.loads(done.stdout)
        self.assertEqual(found["differing"], [])
        self.assertGreater(found["routers"], 1000)
        # The plug-in found 576 chains of experts, and 406 on CPUs where f16 needs
        # longer batches.
        self.assertGreater(found["experts"], 300)
        self.assertGreater(found["sums"], 200)

    def test_another_ggml_is_refused_with_a_message(self):
        model = self.model("qwen3moe", "bf16")
        for plugin, message in (("libggml-switchyard-wrong-api.so",
                                 r"incompatible API version \(backend: 99, current: \d+\)"),
                                ("libggml-switchyard-wrong-version.so",
                                 r"built for ggml 0\.0\.1, and this is ggml \d+\.\d+\.\d+: build it")):
            logits, said = self.run_model(model, plugin)
            self.assertRegex(said, message)
            np.testing.assert_array_equal(logits, self.logits_of_stock(model))


if __name__ == "__main__":
    unittest.main()

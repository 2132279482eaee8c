# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Models with random weights, through llama.cpp with and without the plug-in.

    SWITCHYARD_GGML_BUILD=BUILD python -m unittest discover -s integrations/ggml/tests

BUILD is a build folder configured with -DSWITCHYARD_GGML_TESTS=ON; this
Python has llama_cpp (whose libraries BUILD was built against), numpy and gguf.
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

import numpy as np

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ["SWITCHYARD_GGML_BUILD"])
sys.path.insert(0, str(HERE))
import make_model  # noqa: E402

# Two long batches, a short one, two tokens alone.
BATCHES = (64, 200, 7, 1, 1)
# Errors are shares of the logits' deviation. Exact is the same model with the
# experts' values stored as f32. Stock rounds what it multiplies to bf16 or f16; the
# plug-in may not, by the CPU, and is then as far from stock as stock is from exact.
OF_STOCKS_ERROR = 1.5
NO_ERROR = 1e-3
# Experts of stock, router and sum of the plug-in: what is left are values that go to
# the other side of a rounding.
OF_STOCK = 0.02
# Tokens with two experts at a tie within that may get the other one.
TIES = 0.02

# The CPU as it is, and AVX2 on any with more.
AVX2 = {"SWITCHYARD_ISA": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
CPUS = ({}, AVX2)


def error(logits, exact):
    """Of all tokens but TIES."""
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

    def run_model(self, model, plugin=None, batches=BATCHES, **environment):
        """Logits and what was said on stderr."""
        out = pathlib.Path(self.folder.name, "logits.npy")
        # On a busy machine threads that spin take turns with those they wait for.
        variables = dict(os.environ, SWITCHYARD_GGML_REPORT="1", OMP_WAIT_POLICY="passive",
                         **environment)
        variables.pop("GGML_BACKEND_PATH", None)
        if plugin is not None:
            variables["GGML_BACKEND_PATH"] = str(BUILD / plugin)
        done = subprocess.run(
            [sys.executable, HERE / "run_model.py", model, "logits", out, *map(str, batches)],
            env=variables, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return np.load(out), done.stderr

    def logits_of_stock(self, model, batches=BATCHES):
        if (model, batches) not in self.stock:
            self.stock[model, batches], said = self.run_model(model, batches=batches)
            self.assertNotIn("switchyard", said)
        return self.stock[model, batches]

    def compare(self, family, kind, batches=BATCHES, **environment):
        """Runs the plug-in; returns its report, a dictionary of calls by what
        they were, and the lines about what was declined."""
        model = self.model(family, kind)
        expected = self.logits_of_stock(model, batches)
        exact = self.logits_of_stock(self.model(family, kind + " as f32"), batches)
        logits, said = self.run_model(model, "libggml-switchyard.so", batches, **environment)
        self.assertTrue(np.isfinite(exact).all())
        self.assertFalse(np.isnan(logits).any())
        done = {m[1].strip(): int(m[2])
                for m in re.finditer(r"^switchyard: (.*?) +(\d+) +\d+ +\d+ +[\d.]+ +[\d.]+$",
                                     said, re.M)}
        self.assertLessEqual(error(logits, exact),
                             OF_STOCKS_ERROR * error(expected, exact) + NO_ERROR)
        if not any(what.startswith("experts") for what in done):
            self.assertLessEqual(error(logits, expected), OF_STOCK)
        return done, re.findall(r"^switchyard: left to others: (.*)$", said, re.M)

    def test_experts_of_qwen3(self):
        # Three layers, two batches that are long enough.
        for kind, cpu in itertools.product(("bf16", "f16"), CPUS):
            done, declined = self.compare("qwen3moe", kind, **cpu)
            self.assertEqual(done, {
                "router softmax, 4 of 16": 6,
                f"experts {kind} 16 x 128 x 96, sum of 4 + residual + norm": 6})
            self.assertEqual(declined, [f"MUL_MAT_ID {kind} in CPU_Mapped: few tokens"])

    def test_experts_of_gpt_oss(self):
        # In the last layer rows without logits are dropped before the norm.
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
        # The nodes before the groups have been claimed by then.
        done, _ = self.compare("deepseek2_groups", "bf16")
        self.assertEqual(done, {"of no chain, by the CPU backend": 4,
                                "experts bf16 16 x 128 x 96, sum of 4": 4})

    def test_quantised_experts_are_left_alone(self):
        for kind in ("q8_0", "q4_0"):
            done, declined = self.compare("qwen3moe", kind)
            self.assertEqual(done, {"router softmax, 4 of 16": 6,
                                    "combine sum of 4 + residual + norm": 6})
            self.assertEqual(len(declined), 1)
            self.assertRegex(declined[0], f"^MUL_MAT_ID {kind} in CPU")

    def test_single_tokens_are_left_alone(self):
        model = self.model("qwen3moe", "bf16")
        expected, _ = self.run_model(model, batches=(1,) * 8)
        logits, said = self.run_model(model, "libggml-switchyard.so", batches=(1,) * 8)
        np.testing.assert_array_equal(logits, expected)
        self.assertNotIn("experts bf16", said)

    def test_experts_with_little_to_do_are_left_alone(self):
        # 2.5 (token, slot) pairs for each expert, then 5 and 16.
        few = "few tokens for each expert on this CPU"
        left = {"router softmax, 4 of 64": 3, "combine sum of 4 + residual + norm": 3}
        taken = {"router softmax, 4 of 64": 3,
                 "experts f16 64 x 128 x 96, sum of 4 + residual + norm": 3}
        for kind, tokens, cpu, calls in (("bf16", 40, {}, left), ("f16", 80, AVX2, left),
                                         ("f16", 256, AVX2, taken)):
            done, declined = self.compare("many_experts", kind, batches=(tokens,), **cpu)
            self.assertEqual(done, calls)
            self.assertEqual(f"MUL_MAT_ID {kind} in CPU_Mapped: {few}" in declined, calls is left)

    def test_threads_do_not_change_bits(self):
        model = self.model("qwen3moe", "bf16")
        # Stock attention of single tokens has other bits with other threads.
        one, _ = self.run_model(model, "libggml-switchyard.so", BATCHES[:2], THREADS="1")
        three, _ = self.run_model(model, "libggml-switchyard.so", BATCHES[:2], THREADS="3")
        np.testing.assert_array_equal(one, three)

    def test_nodes_one_by_one_are_computed_all_the_same(self):
        # A callback that asks for each node leaves no chain to be found.
        done, _ = self.compare("gpt_oss", "bf16", EVERY_NODE="1")
        self.assertEqual(list(done), ["of no chain, by the CPU backend"])

    def test_model_without_experts_runs_as_before(self):
        model = self.model("llama", "bf16")
        logits, said = self.run_model(model, "libggml-switchyard.so")
        np.testing.assert_array_equal(logits, self.logits_of_stock(model))
        self.assertNotIn("switchyard:", said)

    def test_views_of_any_form_give_the_numbers_of_stock(self):
        # 2,000 random graphs of a layer, in which one view in sixteen is none
        # that llama.cpp makes.
        done = subprocess.run([BUILD / "views_fuzz", "1", "2000"], stdout=subprocess.PIPE,
                              env=dict(os.environ, OMP_WAIT_POLICY="passive"), check=True)
        found = json.loads(done.stdout)
        self.assertEqual(found["differing"], [])
        self.assertGreater(found["routers"], 1000)
        # 576, and 406 where f16 needs more to do.
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

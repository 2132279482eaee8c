# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Measures how quantised experts change a model's predictions, in llama.cpp and the plug-in.

accuracy.py LIBGGML_SWITCHYARD.SO [FAMILY [TOKENS]]

Prints a table for generated models of FAMILY (qwen3moe) with experts in bf16 and in each
quantised type. The table compares each model's predictions with the predictions of the same model
in f32: the mean Kullback-Leibler divergence, and the share of tokens with the same most likely next
token. The columns are stock llama.cpp with its own repacked weights, the plug-in with packed
weights, and stock with the rounded weights stored as f32. The last column shows the effect of the
weights' rounding alone.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import make_model

KINDS = ("bf16", "q8_0", "q6_K", "q4_K_M", "q4_K", "q4_0", "mxfp4")


def log_probabilities(logits):
    logits = logits.astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def main():
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    plugin, family, tokens = sys.argv[1:] + ["qwen3moe", "1024"][len(sys.argv) - 2:]
    batches = ["256"] * (int(tokens) // 256)
    with tempfile.TemporaryDirectory() as folder:

        def predict(kind, library=None):
            model = pathlib.Path(folder, kind + ".gguf")
            if not model.exists():
                make_model.FAMILIES[family](str(model), kind, s=make_model.SMALL_K)
            out = pathlib.Path(folder, "logits.npy")
            variables = dict(os.environ)
            variables.pop("GGML_BACKEND_PATH", None)
            if library is not None:
                variables["GGML_BACKEND_PATH"] = os.path.abspath(library)
            script = pathlib.Path(__file__).with_name("run_model.py")
            subprocess.run([sys.executable, script, model, "logits", out, *batches],
                           env=variables, check=True)
            return log_probabilities(np.load(out))

        exact = predict("f32")
        print("| experts | KL, 1e-3 nats: stock | plug-in | weights rounded only "
              "| same token, %: stock | plug-in | weights rounded only |")
        print("|---|---|---|---|---|---|---|")
        for kind in KINDS:
            forms = [predict(kind), predict(kind, plugin), predict(kind + make_model.AS_F32)]
            divergence = [(np.exp(exact) * (exact - form)).sum(axis=1).mean() for form in forms]
            same = [(form.argmax(axis=1) == exact.argmax(axis=1)).mean() for form in forms]
            cells = [f"{1e3 * value:.3f}" for value in divergence]
            cells += [f"{100 * value:.1f}" for value in same]
            print("| " + " | ".join([kind, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()

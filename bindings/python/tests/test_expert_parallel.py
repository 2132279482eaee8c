# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests transformers' own expert parallelism: two processes give the same result as one."""

import subprocess
import sys

import torch
from test_models import make
from transformers import AutoModelForCausalLM

PROGRAM = """
import sys, torch, torch.distributed as dist
import switchyard.transformers
from transformers import AutoModelForCausalLM
from transformers.distributed import DistributedConfig
torch.set_num_threads(1)
folder, rank = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gloo", init_method="file://" + folder + "/meet", rank=rank, world_size=2)
model = AutoModelForCausalLM.from_pretrained(
    folder, distributed_config=DistributedConfig(tp_size=2, ep_size=2),
    experts_implementation="switchyard").eval()
experts = model.model.layers[0].mlp.experts
assert experts._is_expert_parallel and experts.num_experts == 4, experts.num_experts
tokens = torch.load(folder + "/tokens.pt")
with torch.inference_mode():
    logits = [model(t).logits for t in (tokens, tokens[:1, :1])]
assert experts in switchyard.transformers._options._of
torch.save(logits, folder + "/logits%d.pt" % rank)
dist.destroy_process_group()
"""


def test_two_processes(tmp_path):
    make("qwen3_moe").save_pretrained(tmp_path)
    tokens = torch.randint(2, 97, (2, 11))
    torch.save(tokens, tmp_path / "tokens.pt")
    ranks = [subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path), str(rank)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=environment(rank)) for rank in range(2)]
    said = [rank.communicate(timeout=240)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], "\n".join(said)
    model = AutoModelForCausalLM.from_pretrained(tmp_path, experts_implementation="switchyard")
    for rank in range(2):
        logits = torch.load(tmp_path / f"logits{rank}.pt")
        with torch.inference_mode():
            for got, part in zip(logits, (tokens, tokens[:1, :1])):
                torch.testing.assert_close(got, model(part).logits)


def environment(rank):
    import os
    return os.environ | {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2",
                         "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "OMP_NUM_THREADS": "1"}

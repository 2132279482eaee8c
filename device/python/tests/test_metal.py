# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of switchyard.metal: kernels over arrays, and their findings."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from switchyard import metal

# In ROW_MAX, FLAGS stands for the barrier's flags; kTimes is a function constant.
ROW_MAX = """#include <metal_stdlib>
using namespace metal;
constant float kTimes [[function_constant(0)]];
kernel void row_max(device const float* x [[buffer(0)]],
                    device float* out [[buffer(1)]],
                    constant uint& n [[buffer(2)]],
                    threadgroup float* part [[threadgroup(0)]],
                    uint i [[thread_position_in_threadgroup]],
                    uint row [[threadgroup_position_in_grid]]) {
  part[i] = x[row * n + i];
  threadgroup_barrier(mem_flags::FLAGS);
  float most = part[0];
  for (uint s = 1; s < n; ++s) most = max(most, part[s]);
  out[row * n + i] = x[row * n + i] - most * kTimes;
}
"""
DOUBLE = """kernel void twice(device int* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  x[i AT] *= 2;
}
"""


@pytest.fixture(autouse=True)
def default_settings(monkeypatch):
    for name, value in vars(metal.Settings()).items():
        monkeypatch.setattr(metal.settings, name, value)


def random_row(count):
    return np.random.default_rng(1).random(count, np.float32)


def run_row_max(flags, x, out, **more):
    return metal.run(
        ROW_MAX, "row_max", len(x), x.shape[1], {2: np.uint32(x.shape[1]), 0: x, 1: out}, groups=True,
        macros={"FLAGS": flags}, memory={0: 4 * x.shape[1]}, constants={"kTimes": 0.5}, **more,
    )  # fmt: skip


@pytest.mark.parametrize("checked", [True, False])
def test_results_are_in_the_arrays(checked):
    x = random_row(128).reshape(2, 64)
    before, out = x.copy(), np.zeros_like(x)
    assert run_row_max("mem_threadgroup", x, out, checked=checked, seeds=2) == []
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(out, x - x.max(1, keepdims=True) / 2)


def test_a_missing_barrier_is_found_with_its_places():
    x = random_row(64)[None]
    out = np.zeros_like(x)
    found = run_row_max("mem_none", x, out, seeds=3)
    assert [f.kind for f in found] == ["barrier-flags"] * 2
    first = min(found, key=lambda f: f.line)
    assert (first.kernel, first.file, first.line, first.threadgroup) == ("row_max", "row_max.metal", 12, (0, 0, 0))
    assert first.code == "float most = part[0];"
    assert first.column == ROW_MAX.split("\n")[11].index("part") + 1
    assert first.other.line == 10 and first.thread is not None
    assert "needs mem_threadgroup" in first.text and "threadgroup_barrier" in first.help
    with pytest.raises(metal.FindingsError) as error:
        metal.assert_clean(found)
    assert error.value.findings == found
    assert all(f.text in str(error.value) and f.code in str(error.value) for f in found)
    assert run_row_max("mem_none", x, out, suppress=["race:row_max"]) == []


def test_bounds_and_unwritten_buffers():
    x = np.arange(4, dtype=np.int32)
    (found,) = metal.run(DOUBLE, "twice", 4, 4, [x], macros={"AT": "+ 1"})
    assert (found.kind, found.line) == ("bounds", 2)
    (found,) = metal.run(DOUBLE, "twice", 4, 4, [x], macros={"AT": ""}, unwritten=[0])
    assert found.kind == "never-written"


def test_arrays_that_are_not_to_be_written_are_not():
    x = np.arange(4, dtype=np.int32)
    x.flags.writeable = False
    assert metal.run(DOUBLE, "twice", 4, 4, [x], macros={"AT": ""}) == []
    np.testing.assert_array_equal(x, range(4))


def test_a_file_and_its_header(tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "at.h").write_text("inline uint at(uint i) { return i + AT; }\n")
    shader = tmp_path / "k.metal"
    shader.write_text(
        '#include <metal_stdlib>\nusing namespace metal;\n#include "at.h"\n'
        "kernel void k(device int* x [[buffer(0)]], uint2 i [[thread_position_in_grid]]) {\n"
        "  x[at(i.x + 2 * i.y)] = 1;\n}\n"
    )
    x = np.zeros(4, np.int32)
    call = {"source": shader, "kernel": "k", "grid": (2, 2), "threadgroup": (2, 1), "buffers": [x]}
    metal.settings.include_folders = [tmp_path / "include"]
    assert metal.run(**call, macros={"AT": 0}) == []
    np.testing.assert_array_equal(x, [1, 1, 1, 1])
    found = metal.run(**call, macros={"AT": 100})
    assert {f.file for f in found} == {str(shader)} and {f.code for f in found} == {"x[at(i.x + 2 * i.y)] = 1;"}
    metal.settings.include_folders = []
    with pytest.raises(metal.MetalError, match="at.h"):
        metal.run(**call)


def test_what_cannot_be_run_is_said():
    def run(*buffers, source=DOUBLE, kernel="twice", **more):
        return metal.run(source, kernel, 4, 4, buffers, macros={"AT": ""}, **more)

    x = np.zeros(4, np.int32)
    for error, match, call in (
        (metal.MetalError, r"twice\.metal:2:\d+: .*undeclared", lambda: run(x, source=DOUBLE.replace("x[", "y["))),
        (metal.MetalError, "the file has twice", lambda: run(x, kernel="thrice")),
        (metal.MetalError, "no buffer 1", lambda: run(x, x)),
        (metal.MetalError, "ended by signal|cannot be run", lambda: run(x, source=FAR, kernel="far", checked=False)),
        (TypeError, "buffer 0: Metal has no float64", lambda: run(np.zeros(4))),
        (ValueError, "buffer 0: is not contiguous", lambda: run(np.zeros((4, 4), np.int32).T)),
        (ValueError, "buffer 0: is empty", lambda: run(np.zeros(0, np.int32))),
    ):
        with pytest.raises(error, match=match):
            call()


FAR = """kernel void far(device char* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  x[long(i + 1) << 44] = 1;
}
"""


def test_pytest_shows_the_finding(tmp_path):
    test = tmp_path / "test_it.py"
    test.write_text(
        f"import numpy as np\nfrom switchyard import metal\nDOUBLE = {DOUBLE!r}\n"
        "def test_twice():\n"
        "    x = np.zeros(4, np.int32)\n"
        "    metal.assert_clean(metal.run(DOUBLE, 'twice', 5, 5, [x], macros={'AT': ''}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "FindingsError: the Metal kernel is wrong" in done.stdout
    assert "x[4]" in done.stdout or "buffer 0" in done.stdout
    assert "code: x[i AT] *= 2;" in done.stdout
    assert "test_it.py:6:" in done.stdout and "_run.py:" not in done.stdout


def test_the_program_comes_with_the_package():
    assert metal._run._program() == sysconfig.get_path("scripts") + "/swy"


def test_the_action_shows_findings_beside_their_lines(tmp_path):
    (tmp_path / "k.metal").write_text(DOUBLE)
    action = Path(__file__).parents[3] / ".github" / "actions" / "metal-check" / "metal-check.sh"

    def check(**inputs):
        path = f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"
        return subprocess.run(
            ["bash", action, "check"], cwd=tmp_path, env={**os.environ, "PATH": path, **inputs},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    run = "k.metal --kernel twice --grid {} --threadgroup 4 -D 'AT=+ 0' -b 0=i32:1,2,3,4\n"
    good = check(RUN="\n" + run.format(4), SEEDS="2")
    assert (good.returncode, good.stdout) == (0, "0 findings in 2 schedules\n"), good.stderr
    found = check(RUN=run.format(5) + run.format(4), SEEDS="1", SARIF="out")
    assert found.returncode == 1
    assert "::error file=k.metal,line=2,col=12::twice: threadgroup (1, 0, 0), thread 0: " in found.stdout
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["1.json", "1.sarif", "2.json", "2.sarif"]
    assert check(SHADERS="k.metal").returncode == 1  # AT is not defined
    unknown = check(RUN="k.metal --kernel none")
    assert unknown.returncode == 1 and "::error::cannot be run: swy metal run k.metal" in unknown.stdout


# The next tests are about the interface of MLX.


def exp_kernel(source, **more):
    return metal.metal_kernel(name="myexp", input_names=["inp"], output_names=["out"], source=source, **more)


EXP = """
        uint elem = thread_position_in_grid.x;
        T tmp = inp[elem];
        out[elem] = metal::exp(tmp);
    """


def call_exp(kernel, a, **more):
    call = {
        "inputs": [a], "template": [("T", np.float32)], "grid": (a.size, 1, 1), "threadgroup": (256, 1, 1),
        "output_shapes": [a.shape], "output_dtypes": [a.dtype],
    }  # fmt: skip
    return kernel(**{**call, **more})


def test_metal_kernel():
    a = random_row(48).reshape(4, 12)[:, ::2]
    (out,) = call_exp(exp_kernel(EXP), a)
    assert out.shape == a.shape and out.dtype == a.dtype
    np.testing.assert_allclose(out, np.exp(a), rtol=1e-6)
    with pytest.raises(metal.FindingsError, match=r"_myexp.metal:4:") as error:
        call_exp(exp_kernel(EXP.replace("out[elem]", "out[elem + 1]")), a)
    assert error.value.findings[0].code.startswith("out[elem + 1]")


def test_metal_kernel_strides():
    source = """
        uint elem = thread_position_in_grid.x;
        out[elem] = inp[elem_to_loc(elem, inp_shape, inp_strides, inp_ndim)] + kMore + int(N) + int(kFlag);
    """
    kernel = exp_kernel(source, header="constant int kMore = 100;", ensure_row_contiguous=False)
    a = np.arange(48, dtype=np.int32).reshape(4, 12)[:, ::2].T
    (out,) = call_exp(kernel, a, template=[("N", 1000), ("kFlag", True)])
    np.testing.assert_array_equal(out, a + 1101)
    # By default the kernel gets a contiguous copy, which has other strides.
    kernel = exp_kernel(source, header="constant int kMore = 100;")
    (out,) = call_exp(kernel, a, template=[("N", 0), ("kFlag", False)])
    np.testing.assert_array_equal(out, a + 100)
    with pytest.raises(ValueError, match="inp: has a negative stride"):
        call_exp(exp_kernel(source, ensure_row_contiguous=False), a[::-1])


def test_metal_kernel_atomic_outputs(capsys):
    kernel = metal.metal_kernel(
        "count", ["values", "by"], ["sums", "total"],
        "atomic_fetch_add_explicit(&sums[values[thread_position_in_grid.x]], by, memory_order_relaxed);\n"
        "atomic_fetch_add_explicit(&total[0], 1, memory_order_relaxed);",
        atomic_outputs=True,
    )  # fmt: skip
    call = {
        "inputs": [np.arange(70, dtype=np.uint8) % 3, 2], "grid": (70, 1, 1), "threadgroup": (32, 1, 1),
        "output_shapes": [(3,), (1,)], "output_dtypes": [np.int32, "uint32"],
    }  # fmt: skip
    sums, total = kernel(**call, init_value=5, verbose=True, stream=None)
    np.testing.assert_array_equal(sums, [53, 51, 51])
    np.testing.assert_array_equal(total, [75])
    printed = capsys.readouterr().out
    assert "device atomic<int32_t>* sums [[buffer(2)]]" in printed and "const constant int32_t& by" in printed
    # Without an initial value, the counters count as never written.
    with pytest.raises(metal.FindingsError) as error:
        kernel(**call)
    assert {f.kind for f in error.value.findings} == {"never-written"}
    with pytest.raises(ValueError, match="count: inputs: 1 for 2 names"):
        kernel(**{**call, "inputs": [1]})
    with pytest.raises(TypeError, match="Metal has no float64"):
        kernel(**{**call, "output_dtypes": [np.int32, np.float64]}, init_value=0)


def test_settings_hold_for_the_doors():
    source = "threadgroup float a[1]; uint i = thread_index_in_threadgroup; a[0] = inp[i]; out[i] = a[0];"
    a = random_row(32)
    with pytest.raises(metal.FindingsError, match="simdgroup_barrier is missing"):
        call_exp(exp_kernel(source), a)
    metal.settings.suppress = ["race:*"]
    call_exp(exp_kernel(source), a)
    metal.settings.suppress = []
    metal.settings.checked = False
    call_exp(exp_kernel(source), a)


# The next tests are about the interface of torch.

LIBRARY = """
#include <metal_stdlib>
using namespace metal;
kernel void full(device float* out, constant float& val, uint idx [[thread_position_in_grid]]) {
  out[idx] = val;
}
kernel void plus(device const bfloat* a, device bfloat* out, constant long& n, constant int2& by, constant half& more,
                 uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_threadgroup]]) {
  out[at.y * n + at.x] = bfloat(float(a[at.y * n + at.x]) + by.x + by.y + float(more) + size.y);
}
"""


def test_compile_shader():
    torch = pytest.importorskip("torch")
    lib = metal.compile_shader(LIBRARY)
    x = torch.zeros(16)
    lib.full(x, 3.14)
    torch.testing.assert_close(x, torch.full((16,), 3.14))
    row = np.zeros(5000, np.float32)
    lib.full(row, 2.0)
    assert (row == 2).all()
    a = torch.arange(32, dtype=torch.bfloat16).reshape(4, 8)
    out = torch.empty_like(a)
    lib.plus(a, out, 8, [1, 2], 0.5, threads=(8, 4), group_size=(4, 2), arg_casts={3: "int32", 4: "fp16"})
    torch.testing.assert_close(out, a + 5.5)
    with pytest.raises(metal.FindingsError, match="full: .*out"):
        lib.full(x, 1.0, threads=17)
    with pytest.raises(ValueError, match="full: threads"):
        lib.full(1.0)
    with pytest.raises(TypeError, match="argument 1: str"):
        lib.full(x, "1")
    with pytest.raises(metal.MetalError, match="the file has full, plus"):
        lib.empty(x)
    assert not hasattr(lib, "__wrapped__")


def test_compile_shader_includes_torchs_headers():
    pytest.importorskip("torch")
    lib = metal.compile_shader(
        "#include <c10/metal/utils.h>\n"
        "kernel void up(device float* x, constant uint& n, uint i [[thread_position_in_grid]]) {\n"
        "  x[i] = c10::metal::ceil_div(i, n);\n}\n"
    )
    x = np.zeros(8, np.float32)
    lib.up(x, 3)
    np.testing.assert_array_equal(x, [0, 1, 1, 1, 2, 2, 2, 3])

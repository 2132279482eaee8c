"""readers_test.py: tests the readers of conformance/ in Python, C and Rust.

Each reader checks the same files of answers. The Rust reader is tested if rustc is installed.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "conformance"
READERS = FOLDER / "readers"
CASES = sorted(FOLDER.glob("routing/*.txt"))


def run(*command, text=""):
    done = subprocess.run([str(word) for word in command], input=text, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout, done.stderr


def build(folder):
    """Returns the command of each reader by its language."""
    readers = {"Python": [sys.executable, "-B", READERS / "routing.py"]}
    compilers = {"C": [os.environ.get("CC", "cc"), "-std=c99", "-Wall", "-Wextra", "-pedantic",
                       "-Werror", READERS / "routing.c", "-lm"],
                 "Rust": ["rustc", "--edition", "2021", "-D", "warnings", READERS / "routing.rs"]}
    for language, compiler in compilers.items():
        if language == "Rust" and shutil.which(compiler[0]) is None:
            continue
        program = folder / language
        code, _, errors = run(*compiler, "-o", program)
        if code != 0:
            raise AssertionError(errors)
        readers[language] = [program]
    return readers


class Readers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.readers = build(pathlib.Path(cls.folder.name))
        # A case's file also contains the right answer.
        cls.right = "".join(case.read_text() for case in CASES)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def expect(self, text, code, *parts, case=None):
        """Runs each reader with the answers `text` on all cases, or on `case` alone."""
        files = CASES if case is None else [FOLDER / "routing" / f"{case}.txt"]
        for language, reader in self.readers.items():
            with self.subTest(language):
                got, out, errors = run(*reader, "-", *files, text=text)
                self.assertEqual(got, code, out + errors)
                for part in parts:
                    self.assertIn(part, errors if code == 2 else out)

    def expect_edited(self, name, edit, code, *parts):
        """Edits the right answer of a case, and expects a result."""
        right = (FOLDER / "routing" / f"{name}.txt").read_text()
        edited = edit(right)
        self.assertNotEqual(edited, right)
        self.expect(edited, code, *parts, case=name)

    def expect_replaced(self, name, old, new, code, *parts):
        self.expect_edited(name, lambda case: case.replace(old, new, 1), code, *parts)

    def test_right_answers(self):
        self.expect(self.right, 0, f"{len(CASES)} right, 0 wrong, 0 unsupported, 0 missing")

    def test_wrong_id(self):
        self.expect_replaced("ties", "ids 4 3\n0 1 2", "ids 4 3\n2 1 0", 1,
                             "ties: wrong: row 0 of ids", " 1 wrong")

    def test_weights_within_the_tolerance(self):
        # The tolerance is 2^-16 of the weight 1/3, which is 5.1e-6.
        for weight in ("0.333338", "0.333329"):
            self.expect_replaced("ties", "0.33333334", weight, 0)
        for weight in ("0.333340", "nan"):
            self.expect_replaced("ties", "0.33333334", weight, 1, "ties: wrong: row 0 of weights")

    def test_number_for_nan_and_infinity(self):
        self.expect_replaced("nan_logits", "weights 5 3\nnan ", "weights 5 3\n0 ", 1,
                             "nan_logits: wrong: row 0 of weights")
        self.expect_replaced("sum_of_zero_raw", "inf -inf\n", "inf inf\n", 1,
                             "sum_of_zero_raw: wrong: row 0 of weights")

    def test_other_shape(self):
        def without_last_ids(case):
            return case.replace("ids 4 3", "ids 3 3").replace("0 7 1\nweights", "weights")
        self.expect_edited("ties", without_last_ids, 1, "ties: wrong: ids: ", "shape")

    def test_identity_weights_are_optional(self):
        def leave_out(case):
            return case[:case.rindex("identity_weights")] + "end\n"
        self.expect_edited("zero_experts", leave_out, 0)
        self.expect_replaced("zero_experts", "1.1998855 ", "1.2 ", 1,
                             "zero_experts: wrong: row 0 of identity_weights")

    def test_unsupported_and_missing(self):
        text = "switchyard-router 1\ncase ties\nunsupported no ties\nend\n"
        self.expect(text, 1, "ties: unsupported", "nan_bias: missing",
                    f"0 right, 0 wrong, 1 unsupported, {len(CASES) - 1} missing")
        self.expect(text, 0, case="ties")

    def test_malformed(self):
        header = "switchyard-router 1\n"
        for text in ("switchyard-router 2\n", header + "case a\n", header + "surprise 1\nend\n",
                     header + "case a\nids 1 1\n", header + "case a\nids 1 2\n1\nend\n",
                     header + "case a\nids 1 1\n1 2\nend\n", header + "case a\nids 1 x\n1\nend\n",
                     header + "case a\nweights 1 1\n0.5x\nend\n"):
            self.expect(text, 2, case="ties")
        for reader in self.readers.values():
            self.assertEqual(run(*reader)[0], 2)
            self.assertEqual(run(*reader, "-", FOLDER / "none.txt")[0], 2)

    def test_are_short(self):
        for reader in READERS.iterdir():
            if reader.is_file():
                self.assertLessEqual(len(reader.read_text().splitlines()), 200, reader)


class Layers(unittest.TestCase):
    def check(self, *files):
        return run(sys.executable, "-B", READERS / "layers.py", *files)

    def test_bits(self):
        files = sorted(FOLDER.glob("layers/*.txt"))
        code, out, errors = self.check(*files)
        self.assertEqual((code, errors, len(out.splitlines())), (0, "", 3), out)

    def test_wrong_bit_and_malformed(self):
        text = (FOLDER / "layers" / "q4_0.txt").read_text()
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "layer.txt"
            for block in ("gate 10 32", "up 10 32", "down 10 64", "output 5 64", "activated 10 32"):
                at = text.index(f"\n{block}\n") + len(block) + 8  # a digit of the first value
                digit = "7" if text[at] != "7" else "6"
                file.write_text(text[:at] + digit + text[at + 1:])
                code, out, _ = self.check(file)
                self.assertEqual(code, 1, block)
                self.assertIn(block.split()[0], out)
            file.write_text(text[:len(text) // 2])
            self.assertEqual(self.check(file)[0], 2)
        self.assertEqual(self.check()[0], 2)


if __name__ == "__main__":
    unittest.main()

"""routing.py ANSWERS CASE...

Reads cases of a router and checks a file of answers (-: standard input). Needs only Python 3.8.
Exits with 1 if an answer is wrong or missing, and with 2 if a file is malformed.

As a module: cases() reads a file, and wrong() compares an answer with its case.
"""
import math
import sys

HEADER = "switchyard-router 1"
FLOATS = ("logits", "correction_bias", "expert_scale", "weights", "identity_weights")
INTEGERS = ("bias_index", "token_mask", "ids")


class Malformed(Exception):
    pass


def cases(text, where="text"):
    """Returns a dict for each case or answer of a text. Blocks (matrices) are lists of rows."""
    lines = enumerate((line.split() for line in text.splitlines()), 1)
    found, case = [], None
    for number, words in lines:
        if not words:
            continue
        if case is None:
            if " ".join(words) != HEADER:
                raise Malformed(f"{where}: line {number}: is not \"{HEADER}\"")
            case = {"options": {}}
            continue
        key, values = words[0], words[1:]
        try:
            if key == "end":
                found.append(case)
                case = None
            elif key == "option":
                case["options"][values[0]] = values[1]
            elif key in ("tokens", "num_experts", "top_k"):
                case[key] = int(values[0])
            elif key == "tolerance":
                case[key] = float(values[0])
            elif key in FLOATS + INTEGERS:
                kind = float if key in FLOATS else int
                rows, cols = int(values[0]), int(values[1])
                case[key] = [[kind(word) for word in next(lines)[1]] for _ in range(rows)]
                if any(len(row) != cols for row in case[key]):
                    raise ValueError("a row has another length")
            elif key in ("case", "about", "families", "unsupported"):
                case[key] = " ".join(values)
            else:
                raise ValueError("is not a key")
        except (ValueError, IndexError, StopIteration) as error:
            raise Malformed(f"{where}: line {number}: {key}: {error}") from None
    if case is not None:
        raise Malformed(f"{where}: the last case has no \"end\"")
    return found


def is_right(got, expected, tolerance):
    if math.isnan(expected):
        return math.isnan(got)
    if math.isinf(expected):
        return got == expected
    return abs(got - expected) <= tolerance * abs(expected) + 2.0 ** -126


def wrong(case, answer):
    """Returns a line about the first difference, or None if the answer is right."""
    for key in ("ids", "weights", "identity_weights"):
        if key not in case or (key == "identity_weights" and key not in answer):
            continue
        if [len(row) for row in answer.get(key, [])] != [len(row) for row in case[key]]:
            return f"{key}: is missing or has another shape"
        for token, (got, expected) in enumerate(zip(answer[key], case[key])):
            if key == "ids":
                same = got == expected
            else:
                same = all(is_right(*pair, case["tolerance"]) for pair in zip(got, expected))
            if not same:
                return f"row {token} of {key}: {got}, expected {expected}"
    return None


def main(arguments):
    if len(arguments) < 2:
        raise Malformed("usage: routing.py ANSWERS CASE...")
    name, files = arguments[0], arguments[1:]
    text = sys.stdin.read() if name == "-" else open(name).read()
    answers = {answer.get("case"): answer for answer in cases(text, name)}
    counts = {"right": 0, "wrong": 0, "unsupported": 0, "missing": 0}
    for file in files:
        for case in cases(open(file).read(), file):
            answer = answers.get(case["case"])
            if answer is None:
                result, line = "missing", "no answer"
            elif "unsupported" in answer:
                result, line = "unsupported", answer["unsupported"]
            else:
                line = wrong(case, answer)
                result = "wrong" if line else "right"
            counts[result] += 1
            if line:
                print(f"{case['case']}: {result}: {line}")
    print(", ".join(f"{count} {result}" for result, count in counts.items()))
    return int(counts["wrong"] + counts["missing"] > 0)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (Malformed, OSError) as failure:
        print(f"routing.py: {failure}", file=sys.stderr)
        sys.exit(2)

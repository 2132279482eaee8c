#!/usr/bin/env python3
"""plain_english.py SOURCE_DIR [ROOM]

Counts comment blocks, and paragraphs of Markdown, that use a placeholder ("what", "those that")
where a noun should stand, because a reader has to guess the noun. At most 3 % of all blocks may use
one, and at most 5 % of the blocks of a room. (A room is a folder of sources, or all Markdown files.)
Prints the blocks of rooms that have more, or of ROOM.
"""
import collections
import pathlib
import re
import sys

MOST, MOST_OF_ROOM, MOST_WHAT = 0.03, 0.05, 0.001
PLACEHOLDER = re.compile(
    r"\b(what|whatever|whose|of which|in which|with which|those that|those who|the one that|that of|"
    r"of its own|of their own|of ours|of yours|but for|as it (is|stands|was|lies)|there is no(ne)?|"
    r"there are no|is there|are there|if there (is|are)|(is|are|was) said|says so|none of|nobody|"
    r"somebody|goes with|is made of|are made of|comes from|who (has|have|is|are))\b", re.I)
WORD = re.compile(r"[A-Za-z']+")
WITHOUT = re.compile(r"Copyright|SPDX|Licen[cs]e|clang-format|NOLINT|http")
COMMENT = re.compile(r"\s*(?://+[!/]?|#(?!\w|!)|\*)\s?(.*)$")
BEHIND_CODE = re.compile(r"[;{},)]\s+//\s?(.*)$")
LIST_ITEM = re.compile(r"\s*([-*|]|\d+\.)\s?")
SUFFIXES = (".h", ".cc", ".c", ".rs", ".py", ".md")


def comments(lines):
    """Runs of lines with nothing but a comment, and comments behind code."""
    block = []
    for line in lines + [""]:
        comment = COMMENT.match(line)
        if comment:
            block.append(comment[1])
            continue
        yield " ".join(block)
        block = []
        behind = BEHIND_CODE.search(line)
        if behind:
            yield behind[1]


def paragraphs(lines):
    """Paragraphs, list items and table rows, without headings and code."""
    block, is_code = [], False
    for line in lines + [""]:
        if line.lstrip().startswith("```"):
            is_code = not is_code
        is_text = line.strip() and not is_code and not line.startswith(("    ", "\t", "```", "#"))
        if not is_text or LIST_ITEM.match(line):
            yield " ".join(block)
            block = []
        if is_text:
            block.append(line.strip())


def room_of(path):
    if path.suffix == ".md":
        return "*.md"
    depth = 2 if path.parts[0] in ("src", "include", "tests", "bindings", "device") else 1
    return "/".join(path.parts[:-1][:depth])


def main():
    root = pathlib.Path(sys.argv[1])
    blocks = collections.defaultdict(list)  # by room: (path, text)
    for path in sorted(root.rglob("*")):
        path = path.relative_to(root)
        if path.parts[0].startswith(("build", ".", "out")) or path.suffix not in SUFFIXES:
            continue
        lines = (root / path).read_text(errors="replace").split("\n")
        for text in (paragraphs if path.suffix == ".md" else comments)(lines):
            if len(WORD.findall(text)) >= 3 and not WITHOUT.search(text):
                blocks[room_of(path)].append((path, text))

    failed = False
    for room, found in blocks.items():
        bad = [f"{path}: {text[:160]}" for path, text in found if PLACEHOLDER.search(text)]
        # A room with few blocks may have one bad block.
        is_over = len(bad) > max(1, MOST_OF_ROOM * len(found))
        failed |= is_over
        if is_over or room in sys.argv[2:]:
            print(f"{room}: {len(bad)} of {len(found)} blocks", *bad, sep="\n  ")
    every = [text for found in blocks.values() for _, text in found]
    bad = sum(bool(PLACEHOLDER.search(text)) for text in every)
    words = sum(len(WORD.findall(text)) for text in every)
    what = sum(len(re.findall(r"\bwhat\b", text, re.I)) for text in every)
    failed |= bad > MOST * len(every) or what > MOST_WHAT * words
    print(f"{bad} of {len(every)} blocks have a placeholder, {1000 * what / words:.1f} of 1000 words are 'what'")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

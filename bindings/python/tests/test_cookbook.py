# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests that the recipe in Python prints the output that docs/cookbook.md shows."""

import pathlib
import re

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "cookbook.md"


def _block(name, language):
    """Returns the page's first code block in `language` after the line that names the file."""
    found = re.search(rf"\n`{re.escape(name)}`:\n.*?\n```{language}\n(.*?)```\n",
                      PAGE.read_text(), re.DOTALL)
    assert found, (name, language)
    return found[1]


def test_recipe(tmp_path, monkeypatch, capsys):
    (tmp_path / "config.json").write_text(_block("config.json", "json"))
    monkeypatch.chdir(tmp_path)
    recipe = compile(_block("numpy_layer.py", "python"), "numpy_layer.py", "exec")
    exec(recipe, {"__name__": "__main__"})
    assert capsys.readouterr().out == _block("numpy_layer.py", "text")

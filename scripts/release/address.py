#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""address.py FOLDER VERSION [ADDRESS]: writes the public address into the files of FOLDER.

ADDRESS is the address of the repository, as for git clone. The files have two texts, one without an
address and one with an address:

    <!-- address: none -->              # address: set
    text without an address             # repository = "@ADDRESS@"
    <!-- address: set                   # address: end
    text with @ADDRESS@ and @VERSION@
    -->

With ADDRESS, the script keeps the second text; without ADDRESS, the first text. It replaces
@ARCHIVES@ by the folder of the published files: the folder of a release on GitHub or Forgejo or,
without ADDRESS, the local folder that packaging/README.md names. With ADDRESS, it also replaces
OWNER/switchyard in examples of GitHub workflows.
"""
import pathlib
import re
import sys

LOCAL = 'file:///opt/switchyard'
# The script skips these files, because they describe the marks and have no text to fill in.
SKIPPED = ('.git', 'build', 'scripts/release', 'tests/version')
PAGE = re.compile(r'^<!-- address: none -->\n(.*?)^<!-- address: set\n(.*?)^-->\n', re.M | re.S)
LINES = re.compile(r'^( *)# address: set\n((?:\1# .*\n)+)\1# address: end\n', re.M)
WORKFLOW = re.compile(r'OWNER/switchyard(.*?)  # wherever you have it$', re.M)
MARK = re.compile(r'^ *(?:<!--|#) address: .*|@ADDRESS@|@ARCHIVES@', re.M)


def fill(text, version, address):
    """Returns the text with the address in place of the marks. If `address` is empty, keeps the text
    that needs no address, and removes the marks."""
    def named(part):
        return part.replace('@ADDRESS@', address).replace('@VERSION@', version)

    def lines(match):
        return named(re.sub(r'^( *)# ', r'\1', match[2], flags=re.M)) if address else ''

    archives = f'{address}/releases/download/v{version}' if address else LOCAL
    text = PAGE.sub(lambda match: named(match[2]) if address else match[1], text)
    text = LINES.sub(lines, text).replace('@ARCHIVES@', archives)
    if address:
        text = WORKFLOW.sub(lambda match: '/'.join(address.split('/')[-2:]) + match[1], text)
    return text


def fill_folder(folder, version, address):
    """Fills in all files, or no file if a mark is wrong. Returns the paths of the changed files."""
    filled = {}
    for path in sorted(folder.rglob('*')):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not path.is_file() or name.startswith(SKIPPED):
            continue
        data = path.read_bytes()
        if not re.search(rb'address: |@ARCHIVES@|@ADDRESS@|OWNER/switchyard', data):
            continue
        text = data.decode()
        new = fill(text, version, address)
        if wrong := MARK.search(new):
            raise ValueError(f'{name}: not a whole mark: {wrong[0].strip()}')
        if new != text:
            filled[path] = new
    for path, new in filled.items():
        path.write_text(new)
    return list(filled)


def main():
    if len(sys.argv) not in (3, 4):
        print('address.py: needs FOLDER VERSION [ADDRESS]', file=sys.stderr)
        sys.exit(2)
    folder, version = pathlib.Path(sys.argv[1]), sys.argv[2]
    address = (sys.argv[3] if len(sys.argv) == 4 else '').rstrip('/').removesuffix('.git')
    try:
        if address and not re.fullmatch(r'https://[\w.:-]+(/[\w.~-]+){2,}', address):
            raise ValueError(f'SWITCHYARD_ADDRESS: is not https://HOST/OWNER/NAME: {address}')
        if not folder.is_dir():
            raise ValueError(f'FOLDER: is no folder: {folder}')
        fill_folder(folder, version, address)
    except ValueError as error:
        print(f'address.py: {error}', file=sys.stderr)
        sys.exit(2)


if __name__ == '__main__':
    main()

#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""address_test.py SOURCE_DIR VERSION: tests scripts/release/address.py, by which `setup.sh release`
writes a public address into the files that name one. The test runs the script on copies. Each file
has to name the address in all its places. Without an address, no place may be left to fill in."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT, VERSION = pathlib.Path(sys.argv[1]), sys.argv[2]
SCRIPT = ROOT / 'scripts/release/address.py'
ADDRESS = 'https://example.org/engines/switchyard'
ARCHIVE = '/switchyard-{}.tar.gz'
FOLDERS = [path for path in ('bindings', 'device', 'docs', 'integrations', 'packaging') if (ROOT / path).is_dir()]
# Each place of the address, with the text around it.
PLACES = {
    'README.md': ['    git clone {address}.git && cd switchyard\n    ./scripts'],
    'CITATION.cff': ['repository-code: "{address}"'],
    'bindings/rust/Cargo.toml': ['repository = "{address}"'],
    'bindings/python/pyproject.toml': ['Repository = "{address}"'],
    'device/python/pyproject.toml': ['Repository = "{address}"'],
    'device/docs/metal.md': ['- uses: engines/switchyard/.github/actions/metal-check@v{version}',
                             '{{repository: engines/switchyard, path: switchyard}}'],
    'docs/linking.md': ['  GIT_REPOSITORY {address}.git\n  GIT_TAG v{version})', 'at <{archives}>'],
    'packaging/conan/conandata.yml': ['url: "{archives}/'],
    'packaging/conan/conanfile.py': ['    homepage = "{address}"'],
    'packaging/conda/recipe.yaml': ['url: {archives}/', '  homepage: {address}\n'],
    'packaging/debian/control': ['Homepage: {address}\n', 'Vcs-Git: {address}.git\n'],
    'packaging/homebrew/switchyard.rb': ['  homepage "{address}"\n', '  url "{archives}/'],
    'packaging/meson/switchyard.wrap': ['source_url = {archives}/'],
    'packaging/vcpkg/portfile.cmake': ['  URLS {archives}/'],
}
LEFT = re.compile(r'@ADDRESS@|@ARCHIVES@|@URL@|address: (?:none|set|end)')


class AddressTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.tree = pathlib.Path(self.folder.name) / 'tree'
        ignored = shutil.ignore_patterns('build*', '*.cc', '*.h', '*.rs', '*.pyc', '*.metal', 'target', 'tests')
        for folder in FOLDERS:
            shutil.copytree(ROOT / folder, self.tree / folder, ignore=ignored)
        for name in ('CITATION.cff', 'README.md'):
            shutil.copy(ROOT / name, self.tree)

    def fill(self, *address):
        return subprocess.run([sys.executable, '-B', SCRIPT, self.tree, VERSION, *address],
                              capture_output=True, text=True)

    def texts(self):
        return {path.relative_to(self.tree).as_posix(): path.read_text(errors='replace')
                for path in self.tree.rglob('*') if path.is_file() and path.name != 'pages.awk'}

    def test_all_places_agree(self):
        for given in (ADDRESS, ADDRESS + '/', ADDRESS + '.git'):
            self.setUp()
            self.assertEqual(self.fill(given).stderr, '')
            texts = self.texts()
            archives = f'{ADDRESS}/releases/download/v{VERSION}'
            for name, places in PLACES.items():
                if name.split('/')[0] == 'device' and 'device' not in FOLDERS:
                    continue
                for place in places:
                    self.assertIn(place.format(address=ADDRESS, archives=archives, version=VERSION), texts[name], name)
            named = {name for name, text in texts.items() if 'example.org' in text}
            self.assertLessEqual(named, set(PLACES), 'a place that PLACES does not list')
            for name, text in texts.items():
                self.assertIsNone(LEFT.search(text), name)
                for found in re.findall(r'https://example\.org[^\s"\'<>()\]]*', text):
                    rest = found.removeprefix(ADDRESS)
                    self.assertRegex(rest, rf'^(\.git|/blob/v{re.escape(VERSION)}/CHANGELOG\.md'
                                     rf'|/releases/download/v{re.escape(VERSION)}(/.*)?|)$', name)

    def test_nothing_is_left_without_an_address(self):
        self.assertEqual(self.fill().stderr, '')
        texts = self.texts()
        for name, text in texts.items():
            self.assertIsNone(LEFT.search(text), name)
        self.assertNotIn('v@VERSION@', texts['docs/linking.md'])
        # The texts name a local folder instead of the address.
        self.assertIn('SOURCE_DIR /path/to/switchyard)', texts['docs/linking.md'])
        self.assertIn('so make the files', texts['docs/linking.md'])
        for name, places in PLACES.items():
            if any('{archives}' in place for place in places) and name.startswith('packaging'):
                self.assertIn('file:///opt/switchyard/switchyard-', texts[name], name)
        self.assertIn('`/opt/switchyard`', texts['packaging/README.md'])

    def test_toml_is_valid(self):
        try:
            import tomllib  # of Python 3.11
        except ImportError:
            self.skipTest('no tomllib')
        for address in ((), (ADDRESS,)):
            self.setUp()
            self.fill(*address)
            crate = tomllib.loads((self.tree / 'bindings/rust/Cargo.toml').read_text())['package']
            self.assertEqual(crate.get('repository'), address[0] if address else None)
            for name in ('bindings/python/pyproject.toml', 'device/python/pyproject.toml'):
                if (self.tree / name).exists():
                    project = tomllib.loads((self.tree / name).read_text())['project']
                    self.assertIn('optional-dependencies', project)
                    self.assertEqual(project.get('urls', {}).get('Repository'), address[0] if address else None)

    def test_a_wrong_address_changes_nothing(self):
        before = self.texts()
        for address in ('http://example.org/a/b', 'https://example.org', 'https://example.org/a', 'a/b',
                        ADDRESS + '"', ADDRESS + ' x', 'https://example.org/a/@ADDRESS@'):
            ran = self.fill(address)
            self.assertEqual(ran.returncode, 2, address)
            self.assertEqual(ran.stderr, f'address.py: SWITCHYARD_ADDRESS: is not https://HOST/OWNER/NAME: {address}\n')
        self.assertEqual(self.texts(), before)

    def test_a_broken_mark_changes_nothing(self):
        with open(self.tree / 'docs/linking.md', 'a') as file:
            file.write('<!-- address: none -->\n')
        before = self.texts()
        ran = self.fill(ADDRESS)
        self.assertEqual((ran.returncode, ran.stderr),
                         (2, 'address.py: docs/linking.md: not a whole mark: <!-- address: none -->\n'))
        self.assertEqual(self.texts(), before)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])

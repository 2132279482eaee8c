#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""sbom.py FOLDER VERSION HIGHWAY COMMIT CLI11 JSON ADDRESS: writes FOLDER/switchyard-VERSION.spdx.json.

The file lists, in SPDX 2.3, the files of a release and the other projects' code in them. HIGHWAY is
the folder of Highway's sources, CLI11 and JSON are versions, and ADDRESS is the repository's address
or empty. The time of the file is SOURCE_DATE_EPOCH."""
import datetime
import hashlib
import json
import os
import pathlib
import re
import sys


def package(name, version, licence, copyright_text, location='NOASSERTION'):
    return {
        'SPDXID': f'SPDXRef-{name}', 'name': name, 'versionInfo': version, 'filesAnalyzed': False,
        'downloadLocation': location, 'licenseConcluded': licence, 'licenseDeclared': licence,
        'copyrightText': copyright_text,
    }


def main():
    folder, version, highway, commit, cli11, json_version, address = sys.argv[1:]
    text = (pathlib.Path(highway) / 'hwy/base.h').read_text() + (
        pathlib.Path(highway) / 'hwy/highway.h').read_text()
    numbers = (re.search(rf'#define HWY_{part} (\d+)', text)[1] for part in ('MAJOR', 'MINOR', 'PATCH'))
    files = []
    for path in sorted(pathlib.Path(folder).iterdir()):
        data = path.read_bytes()
        files.append({
            'SPDXID': 'SPDXRef-File-' + re.sub('[^A-Za-z0-9.-]', '-', path.name), 'fileName': './' + path.name,
            'checksums': [{'algorithm': name.upper(), 'checksumValue': hashlib.new(name, data).hexdigest()}
                          for name in ('sha1', 'sha256')],
            'licenseConcluded': 'Apache-2.0', 'copyrightText': 'NOASSERTION',
        })
    # Lists the files that contain code of other projects. Highway is in the archives and wheels, but
    # not in Debian's packages, the crate and the sources.
    within = {
        'highway': [f for f in files if re.search(r'linux-|\.whl$', f['fileName'])],
        # swy contains CLI11 and nlohmann-json, because it reads a command line and files.
        **{name: [f for f in files if re.search('linux-|metal', f['fileName'])] for name in ('cli11', 'nlohmann-json')},
    }
    relation = lambda a, kind, b: {'spdxElementId': a, 'relationshipType': kind, 'relatedSpdxElement': b}
    created = datetime.datetime.fromtimestamp(int(os.environ['SOURCE_DATE_EPOCH']), datetime.timezone.utc)
    document = {
        'spdxVersion': 'SPDX-2.3', 'dataLicense': 'CC0-1.0', 'SPDXID': 'SPDXRef-DOCUMENT',
        'name': f'switchyard-{version}', 'documentNamespace': f'https://spdx.org/spdxdocs/switchyard-{version}-{commit}',
        'creationInfo': {'created': created.strftime('%Y-%m-%dT%H:%M:%SZ'),
                         'creators': ['Organization: The Switchyard Authors', 'Tool: sbom.py']},
        'packages': [
            package('switchyard', version, 'Apache-2.0', 'Copyright 2026 The Switchyard Authors',
                    f'git+{address}.git@{commit}' if address else 'NOASSERTION'),
            package('highway', '.'.join(numbers), 'Apache-2.0', 'Copyright Google LLC'),
            package('cli11', cli11, 'BSD-3-Clause', 'Copyright University of Cincinnati'),
            package('nlohmann-json', json_version, 'MIT', 'Copyright Niels Lohmann'),
        ],
        'files': files,
        'relationships':
            [relation('SPDXRef-DOCUMENT', 'DESCRIBES', 'SPDXRef-switchyard')]
            + [relation(f['SPDXID'], 'GENERATED_FROM', 'SPDXRef-switchyard') for f in files]
            + [relation(f['SPDXID'], 'CONTAINS', f'SPDXRef-{name}') for name in within for f in within[name]],
    }
    (pathlib.Path(folder) / f'switchyard-{version}.spdx.json').write_text(json.dumps(document, indent=1) + '\n')


if __name__ == '__main__':
    main()

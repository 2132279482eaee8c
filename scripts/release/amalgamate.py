#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""amalgamate.py FOLDER: writes switchyard.h and switchyard.cc, the kernels in one
header and one source.

Highway compiles a source once per target by including it again. Here all kernels are a
single text, which Highway includes once per target. The text contains each shared header
once. Each file's unnamed namespace lies in a named namespace of its own, because several
files have, for example, a Load().
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^#include "((?:src|switchyard)/[^"]+)"\n', re.M)
LOOP = re.compile(
    r'#undef HWY_TARGET_INCLUDE\n#define HWY_TARGET_INCLUDE "[^"]+"\n((?:#include "src[^\n]*\n|\n)*)'
    r'#include "hwy/foreach_target.h"\n')
LICENCE = '// Copyright 2026 The Switchyard Authors\n// SPDX-License-Identifier: Apache-2.0\n'


def read(path):
    text = (ROOT / path).read_text()
    assert text.startswith(LICENCE), path
    return text[len(LICENCE):]


def inline(text, seen, per_target=True):
    """Replaces the first include of each of our headers by the header's text, and drops later ones.

    If not `per_target`, takes only the part of a kernel header (-inl.h) before its #ifdef
    HWY_NAMESPACE, because the rest must be compiled once per target.
    """
    def header(match):
        name = match[1]
        if name in seen:
            return ''
        text = read(f'include/{name}' if name.startswith('switchyard/') else name)
        if name.endswith('-inl.h') and not per_target:
            text, marker, _ = text.partition('#ifdef HWY_NAMESPACE\n')
            assert marker, name
        else:
            seen.add(name)
        return inline(text, seen, per_target)
    return INCLUDE.sub(header, text)


def apart(path, text):
    """Puts a source's unnamed namespaces into a named namespace, with a using directive behind it."""
    name = 'in_' + re.sub(r'\W', '_', path[4:-3])
    text = re.sub(r'^namespace \{$', f'namespace {name} {{\nnamespace {{', text, flags=re.M)
    return re.sub(r'^\}  // namespace$',
                  f'}}  // namespace\n}}  // namespace {name}\nusing namespace {name};', text, flags=re.M)


def main():
    out = pathlib.Path(sys.argv[1])
    cmake = (ROOT / 'CMakeLists.txt').read_text()
    version = re.search(r'^project\(switchyard VERSION (\S+)', cmake, re.M)[1]
    rooms = {room: sorted(p.stem for p in (ROOT / room).glob('*.cc')) for room in ('src/base', 'src', 'src/simd')}
    stems = [name for name in rooms['src'] if name in rooms['src/simd']]
    sources = [f'{room}/{name}.cc' for room, names in rooms.items() for name in names if name not in stems]
    sources += [f'{room}/{stem}.cc' for stem in stems for room in ('src', 'src/simd')]

    head = LICENCE + f"""
// Switchyard {version}, without the device layer and the C ABI. Made by
// scripts/release/amalgamate.py. Needs only Highway 1.0.3 or later.
"""
    seen = set()
    # Puts openmp_executor.h last, so that the headers that it includes are already in the text,
    # outside of its #ifdef _OPENMP.
    names = sorted((p.name for p in (ROOT / 'include/switchyard').glob('*.h') if p.name != 'switchyard.h'),
                   key=lambda n: (n == 'openmp_executor.h', n))
    public = inline(''.join(f'#include "switchyard/{n}"\n' for n in names), seen)
    out.mkdir(parents=True, exist_ok=True)
    (out / 'switchyard.h').write_text(
        head + '#ifndef SWITCHYARD_AMALGAMATED_H_\n#define SWITCHYARD_AMALGAMATED_H_\n'
        + public + '\n#endif  // SWITCHYARD_AMALGAMATED_H_\n')

    before, kernels, once = '', '', ''
    for path in sources:
        text = re.sub(r'^#define HWY_WANT_AVX3_DL\n', '', read(path), flags=re.M)
        loop = LOOP.search(text)
        if loop:
            before += text[:loop.start()] + loop[1]
            kernels += apart(path, text[loop.end():])
        else:
            once += apart(path, text)
    # Calls inline() in the order of the output file, because inline() keeps a header only where it
    # is included first.
    before = inline(before, seen, per_target=False)
    kernels = inline(kernels, seen)
    (out / 'switchyard.cc').write_text(head + f"""//
//   c++ -std=c++17 -O3 -ffp-contract=off -I FOLDER -c FOLDER/switchyard.cc
//
// FOLDER contains this file. Highway's headers must be on the include path, and
// programs link libhwy. -DSWITCHYARD_WITH_TBB adds MakeTbbExecutor(), which needs TBB.
// Compiling takes minutes and gigabytes of memory, because each kernel is compiled
// for each ISA.

#ifndef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL
#endif
#include "switchyard.h"
{before}
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "switchyard.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
{kernels}
#if HWY_ONCE
{inline(once, seen)}
#endif  // HWY_ONCE
""")


if __name__ == '__main__':
    main()

// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! Tests that the structs of switchyard.h have the same layout and defaults in Rust
//! as in C.

use std::collections::{BTreeMap, BTreeSet};
use switchyard::sys;

const LAYOUT: &str = include_str!("../../../tests/c/layout.txt");

/// Maps the name of a C struct to its size, and to the offset and size of each field.
type Structs<'a> = BTreeMap<&'a str, (usize, BTreeMap<&'a str, (usize, usize)>)>;

fn lines_of_structs() -> impl Iterator<Item = &'static str> {
    let mut is_struct = true;
    LAYOUT.lines().filter(move |line| {
        if !line.starts_with(' ') {
            is_struct = !line.starts_with("enum ") && !line.starts_with("function ");
        }
        is_struct
    })
}
fn of_c() -> Structs<'static> {
    let mut structs = Structs::new();
    let mut last = "";
    for line in lines_of_structs() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |i: usize| words[i].parse::<usize>().expect(line);
        if line.starts_with(' ') {
            let fields = &mut structs.get_mut(last).unwrap().1;
            fields.insert(words[0], (number(1), number(2)));
        } else {
            last = words[0];
            structs.insert(last, (number(1), BTreeMap::new()));
        }
    }
    structs
}

#[test]
fn structs_are_those_of_c() {
    let of_c = of_c();
    assert!(of_c.len() > 50);
    let mut seen = BTreeSet::new();
    for (name, size, fields) in sys::layouts() {
        let (size_in_c, fields_in_c) = &of_c[name];
        assert_eq!(size, *size_in_c, "{}", name);
        for (field, offset, size) in &fields {
            let field = field.trim_start_matches("r#");
            assert_eq!((*offset, *size), fields_in_c[field], "{}.{}", name, field);
        }
        assert_eq!(fields.len(), fields_in_c.len(), "{}", name);
        seen.insert(name);
    }
    assert_eq!(seen, of_c.keys().copied().collect());
}

#[test]
fn defaults_are_those_of_c() {
    let initial: BTreeMap<_, _> = sys::initial().into_iter().collect();
    let (mut of, mut compared) = ("", 0);
    for line in lines_of_structs() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !line.starts_with(' ') {
            of = words[0];
        }
        let wanted = match words[..] {
            [_, _, _, "max"] => u64::MAX,
            [_, _, _, bits] if bits.starts_with("0x") => {
                u64::from_str_radix(&bits[2..], 16).unwrap()
            }
            [_, _, _, number] => number.parse().unwrap(),
            _ => continue,
        };
        let (offset, size): (usize, usize) = (words[1].parse().unwrap(), words[2].parse().unwrap());
        let bytes = match initial.get(of) {
            Some(bytes) => *bytes,
            None => continue,
        };
        // SAFETY: the slice is a field of a constant, which lives forever.
        let field = unsafe { std::slice::from_raw_parts(bytes.add(offset), size) };
        assert_eq!(field, &wanted.to_ne_bytes()[..size], "{}: {}", of, line);
        compared += 1;
    }
    assert!(compared > 100, "{}", compared);
}

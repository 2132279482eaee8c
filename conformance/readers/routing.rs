//! routing ANSWERS CASE...
//!
//! Reads cases of a router and checks a file of answers (-: standard input). Needs only std:
//! rustc -O routing.rs
//! Exits with 1 if an answer is wrong or missing, and with 2 if a file is malformed.

use std::collections::HashMap;
use std::io::Read;
use std::process::exit;
use std::str::FromStr;

const HEADER: &str = "switchyard-router 1";
const FLOATS: [&str; 5] =
    ["logits", "correction_bias", "expert_scale", "weights", "identity_weights"];
const INTEGERS: [&str; 3] = ["bias_index", "token_mask", "ids"];

/// A case or an answer. Blocks (matrices) are lists of rows.
#[derive(Default)]
struct Case {
    name: String,
    unsupported: Option<String>,
    /// The values of tokens, num_experts and top_k.
    sizes: HashMap<String, usize>,
    tolerance: f64,
    options: Vec<(String, String)>,
    floats: HashMap<String, Vec<Vec<f32>>>,
    integers: HashMap<String, Vec<Vec<i32>>>,
}

fn parse<T: FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("\"{word}\" is not a number of its kind"))
}

/// Reads the rows of a block. `shape` has the number of rows and of columns.
fn block<'a, T: FromStr>(
    shape: &str,
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
) -> Result<Vec<Vec<T>>, String> {
    let shape = shape.split_whitespace().map(parse).collect::<Result<Vec<usize>, _>>()?;
    let &[rows, cols] = &shape[..] else {
        return Err("is not followed by rows and columns".into());
    };
    let mut read = Vec::new();
    for _ in 0..rows {
        let (_, line) = lines.next().ok_or("the text ends within the block")?;
        let row = line.split_whitespace().map(parse).collect::<Result<Vec<T>, _>>()?;
        if row.len() != cols {
            return Err(format!("a row has {} values, not {cols}", row.len()));
        }
        read.push(row);
    }
    Ok(read)
}

fn cases(text: &str) -> Result<Vec<Case>, String> {
    let mut found = Vec::new();
    let mut current: Option<Case> = None;
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let line = line.trim();
        let at = |error: String| format!("line {}: {error}", number + 1);
        if line.is_empty() {
            continue;
        }
        let Some(case) = current.as_mut() else {
            if line != HEADER {
                return Err(at(format!("is not \"{HEADER}\"")));
            }
            current = Some(Case::default());
            continue;
        };
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        let named = |error: String| at(format!("{key}: {error}"));
        match key {
            "end" => found.extend(current.take()),
            "case" => case.name = value.into(),
            "unsupported" => case.unsupported = Some(value.into()),
            "about" | "families" => {}
            "tokens" | "num_experts" | "top_k" => {
                case.sizes.insert(key.into(), parse(value).map_err(named)?);
            }
            "tolerance" => case.tolerance = parse(value).map_err(named)?,
            "option" => {
                let option = value.split_once(' ').ok_or_else(|| named("has no value".into()))?;
                case.options.push((option.0.into(), option.1.into()));
            }
            _ if FLOATS.contains(&key) => {
                let rows = block(value, &mut lines).map_err(named)?;
                case.floats.insert(key.into(), rows);
            }
            _ if INTEGERS.contains(&key) => {
                let rows = block(value, &mut lines).map_err(named)?;
                case.integers.insert(key.into(), rows);
            }
            _ => return Err(named("is not a key".into())),
        }
    }
    match current {
        Some(_) => Err("the last case has no \"end\"".into()),
        None => Ok(found),
    }
}

fn is_right(got: f32, expected: f32, tolerance: f64) -> bool {
    if expected.is_nan() || expected.is_infinite() {
        return got == expected || (got.is_nan() && expected.is_nan());
    }
    let (got, expected) = (f64::from(got), f64::from(expected));
    (got - expected).abs() <= tolerance * expected.abs() + 2f64.powi(-126)
}

/// Returns a line about the first difference, or None if the answer is right.
fn wrong(case: &Case, answer: &Case) -> Option<String> {
    let empty = (Vec::new(), Vec::new());
    let expected = case.integers.get("ids").unwrap_or(&empty.0);
    let got = answer.integers.get("ids").unwrap_or(&empty.0);
    if got.len() != expected.len() {
        return Some("ids: is missing or has another shape".into());
    }
    for (token, (got, expected)) in got.iter().zip(expected).enumerate() {
        if got != expected {
            return Some(format!("row {token} of ids: {got:?}, expected {expected:?}"));
        }
    }
    for key in ["weights", "identity_weights"] {
        let expected = case.floats.get(key).unwrap_or(&empty.1);
        let Some(got) = answer.floats.get(key) else {
            if key == "weights" {
                return Some("weights: is missing".into());
            }
            continue;
        };
        if got.len() != expected.len() {
            return Some(format!("{key}: has another shape"));
        }
        for (token, (got, expected)) in got.iter().zip(expected).enumerate() {
            let mut pairs = got.iter().zip(expected);
            if got.len() != expected.len()
                || !pairs.all(|(&got, &expected)| is_right(got, expected, case.tolerance))
            {
                return Some(format!("row {token} of {key}: {got:?}, expected {expected:?}"));
            }
        }
    }
    None
}

fn read(file: &str) -> Result<Vec<Case>, String> {
    let mut text = String::new();
    let result = match file {
        "-" => std::io::stdin().read_to_string(&mut text).map(|_| ()),
        _ => std::fs::read_to_string(file).map(|read| text = read),
    };
    result
        .map_err(|error| error.to_string())
        .and_then(|()| cases(&text))
        .map_err(|error| format!("{file}: {error}"))
}

fn run(files: &[String]) -> Result<bool, String> {
    if files.len() < 2 {
        return Err("usage: routing ANSWERS CASE...".into());
    }
    let answers: HashMap<String, Case> =
        read(&files[0])?.into_iter().map(|answer| (answer.name.clone(), answer)).collect();
    let kinds = ["right", "wrong", "unsupported", "missing"];
    let mut counts = [0; 4];
    for file in &files[1..] {
        for case in read(file)? {
            let (kind, line) = match answers.get(&case.name) {
                None => (3, Some("no answer".into())),
                Some(answer) => match &answer.unsupported {
                    Some(reason) => (2, Some(reason.clone())),
                    None => wrong(&case, answer).map_or((0, None), |line| (1, Some(line))),
                },
            };
            counts[kind] += 1;
            if let Some(line) = line {
                println!("{}: {}: {line}", case.name, kinds[kind]);
            }
        }
    }
    let summary: Vec<_> = counts.iter().zip(kinds).map(|(n, kind)| format!("{n} {kind}")).collect();
    println!("{}", summary.join(", "));
    Ok(counts[1] + counts[3] == 0)
}

fn main() {
    let files: Vec<String> = std::env::args().skip(1).collect();
    match run(&files) {
        Ok(is_right) => exit(i32::from(!is_right)),
        Err(error) => {
            eprintln!("routing: {error}");
            exit(2)
        }
    }
}

// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! A parser for the part of JSON that a config.json uses: objects, lists, numbers, flags
//! and texts. The crate has its own parser to avoid dependencies.

pub(crate) enum Value {
    Object(Vec<(String, Value)>),
    List(Vec<Value>),
    Text(String),
    /// A number, or a flag as 0 or 1.
    Number(f64),
    Null,
}

impl Value {
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Object(pairs) => pairs.iter().find(|pair| pair.0 == key).map(|pair| &pair.1),
            _ => None,
        }
    }
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Parses `text`. Returns None if it is malformed.
pub(crate) fn parse(text: &str) -> Option<Value> {
    let mut parser = Parser { text, at: 0 };
    let value = parser.value(64)?;
    parser.space();
    if parser.at == text.len() {
        Some(value)
    } else {
        None
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}
impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }
    /// Skips `word` if it comes next, and returns true if it did.
    fn eat(&mut self, word: &str) -> bool {
        let found = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        if found {
            self.at += word.len();
        }
        found
    }

    /// Parses a value. `depth` limits the recursion.
    fn value(&mut self, depth: usize) -> Option<Value> {
        self.space();
        match self.peek()? {
            b'{' => {
                let mut pairs = Vec::new();
                self.items("{", "}", |parser| {
                    parser.space();
                    let key = parser.string()?;
                    parser.space();
                    if !parser.eat(":") {
                        return None;
                    }
                    pairs.push((key, parser.value(depth.checked_sub(1)?)?));
                    Some(())
                })?;
                Some(Value::Object(pairs))
            }
            b'[' => {
                let mut list = Vec::new();
                self.items("[", "]", |parser| {
                    list.push(parser.value(depth.checked_sub(1)?)?);
                    Some(())
                })?;
                Some(Value::List(list))
            }
            b'"' => self.string().map(Value::Text),
            b'n' if self.eat("null") => Some(Value::Null),
            b't' if self.eat("true") => Some(Value::Number(1.0)),
            b'f' if self.eat("false") => Some(Value::Number(0.0)),
            // JSON does not have NaN, Infinity and -Infinity, but Python writes them.
            b'N' if self.eat("NaN") => Some(Value::Number(f64::NAN)),
            b'I' if self.eat("Infinity") => Some(Value::Number(f64::INFINITY)),
            b'-' if self.eat("-Infinity") => Some(Value::Number(f64::NEG_INFINITY)),
            b'-' | b'0'..=b'9' => self.number(),
            _ => None,
        }
    }
    fn items(
        &mut self,
        open: &str,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.eat(open);
        self.space();
        if self.eat(close) {
            return Some(());
        }
        loop {
            item(self)?;
            self.space();
            if self.eat(close) {
                return Some(());
            }
            if !self.eat(",") {
                return None;
            }
        }
    }
    /// Parses a number. Rust's parser accepts JSON's numbers and a few others, such as
    /// `01`, which do no harm.
    fn number(&mut self) -> Option<Value> {
        let start = self.at;
        while matches!(self.peek(), Some(b'+' | b'-' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
            self.at += 1;
        }
        self.text[start..self.at].parse().ok().map(Value::Number)
    }
    fn string(&mut self) -> Option<String> {
        if !self.eat("\"") {
            return None;
        }
        let mut string = String::new();
        loop {
            let rest = &self.text[self.at..];
            let next = rest.chars().next()?;
            self.at += next.len_utf8();
            match next {
                '"' => return Some(string),
                '\\' => string.push(self.escaped()?),
                '\0'..='\x1f' => return None,
                next => string.push(next),
            }
        }
    }
    fn escaped(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += 1;
        Some(match next {
            b'"' | b'\\' | b'/' => next.into(),
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.unit()?;
                if !(0xD800..0xDC00).contains(&first) {
                    return char::from_u32(first);
                }
                let second = if self.eat("\\u") { self.unit()? } else { 0 };
                if !(0xDC00..0xE000).contains(&second) {
                    return None;
                }
                return char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00));
            }
            _ => return None,
        })
    }
    fn unit(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        // from_str_radix() would accept a sign.
        if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            u32::from_str_radix(digits, 16).ok()
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(value: &Value) -> String {
        match value {
            Value::Object(pairs) => {
                let pairs: Vec<String> =
                    pairs.iter().map(|(key, value)| format!("{}={}", key, show(value))).collect();
                format!("{{{}}}", pairs.join(","))
            }
            Value::Text(text) => format!("'{}'", text),
            Value::Number(number) => number.to_string(),
            Value::List(list) => {
                format!("[{}]", list.iter().map(show).collect::<Vec<_>>().join(","))
            }
            Value::Null => "-".into(),
        }
    }

    #[test]
    fn values() {
        for (text, wanted) in [
            ("{}", "{}"),
            (
                " {\"a\" : 1 ,\n\"b\":[1,[],{\"c\":2}], \"d\":null}\r\n\t",
                "{a=1,b=[1,[],{c=2}],d=-}",
            ),
            ("{\"a\":{\"b\":true,\"c\":false}}", "{a={b=1,c=0}}"),
            ("[-0.5e+1]", "[-5]"),
            ("-0.5E1", "-5"),
            ("1e-6", "0.000001"),
            ("NaN", "NaN"),
            ("-Infinity", "-inf"),
            (r#""a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é😀""#, "'a\"\\/\x08\x0c\n\r\té😀é😀'"),
        ] {
            assert_eq!(parse(text).as_ref().map(show).as_deref(), Some(wanted), "{}", text);
        }
        let pair = parse("{\"a\":\"b\"}").unwrap();
        assert_eq!(pair.get("a").and_then(Value::text), Some("b"));
        assert!(pair.get("b").is_none() && Value::Null.get("a").is_none());
    }

    #[test]
    fn malformed_ones_are_none() {
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(parse(&deep(65)).is_some());
        for text in [
            "",
            " ",
            "{",
            "}",
            "[",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "[1,]",
            "[1 2]",
            "\"",
            "\"a",
            "\"\\",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u+123\"",
            "\"\\ud800\"",
            "\"\\ud800\\u0041\"",
            "\"\\udc00\"",
            "\"\n\"",
            "\"\\u00é\"",
            "nul",
            "tru",
            "-",
            "1-",
            "+1",
            "1 2",
            "{} {}",
            "é",
        ] {
            assert!(parse(text).is_none(), "{}", text);
        }
        assert!(parse(&deep(66)).is_none());
        assert!(parse(&"[".repeat(1 << 20)).is_none());
        // Every proper prefix of a text is malformed.
        let text = r#"{"a": [1.5, "é\u00e9\ud83d\ude00"], "b": {"c": -1e5, "d": null}}"#;
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            assert!(parse(&text[..end]).is_none(), "{}", &text[..end]);
        }
        assert!(parse(text).is_some());
    }
}

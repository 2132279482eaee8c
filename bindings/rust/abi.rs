// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! Writes `sys` from `switchyard.h`, its structs, enumerators and functions, and
//! the enumerations of `values`. Part of the build script, so that Rust says
//! nothing of the C ABI a second time. The headers are a small, regular dialect of
//! C; anything else is refused.

use std::collections::BTreeMap;
use std::fmt::Write;

/// The texts of sys.rs and values.rs for those of the headers, or the error.
pub fn translate(headers: &[String]) -> Result<(String, String), String> {
    let text: String = headers.iter().map(|header| plain(header)).collect();
    let mut abi = Abi { tokens: tokens(&text), comments: comments(headers), ..Abi::default() };
    abi.read()?;
    let sys = format!(
        "structs! {{\n{}}}\nenumerators! {{\n{}}}\nextern \"C\" {{\n{}}}\n{}",
        abi.structs, abi.enumerators, abi.functions, abi.types
    );
    Ok((sys, abi.values))
}

/// The comments above each enumeration and beside each enumerator.
fn comments(headers: &[String]) -> BTreeMap<String, String> {
    let mut comments = BTreeMap::new();
    let mut above = String::new();
    for line in headers.iter().flat_map(|header| header.lines()) {
        let (code, comment) = line.split_once("//").unwrap_or((line, ""));
        let words: Vec<&str> = code.split_whitespace().collect();
        match words[..] {
            [] => {
                above = if comment.is_empty() { String::new() } else { above + comment };
                continue;
            }
            ["enum", name, ..] => comments.insert(name.to_string(), above.trim().to_string()),
            [name, "=", ..] => comments.insert(name.to_string(), comment.trim().to_string()),
            _ => None,
        };
        above = String::new();
    }
    comments
}

/// Without comments and the preprocessor's lines.
fn plain(header: &str) -> String {
    let mut is_directive = false;
    let mut text = String::new();
    for line in header.lines() {
        let was_directive = is_directive;
        is_directive =
            (was_directive || line.trim_start().starts_with('#')) && line.ends_with('\\');
        if !was_directive && !line.trim_start().starts_with('#') {
            text += line.split("//").next().unwrap();
            text.push('\n');
        }
    }
    text
}

fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut word = String::new();
    for c in text.chars().chain(std::iter::once(' ')) {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            tokens.push(std::mem::take(&mut word));
        }
        if !c.is_whitespace() {
            tokens.push(c.to_string());
        }
    }
    tokens
}

#[derive(Default)]
struct Abi {
    tokens: Vec<String>,
    at: usize,
    structs: String,
    enumerators: String,
    functions: String,
    types: String,
    values: String,
    comments: BTreeMap<String, String>,
}

/// A name with its type, of a field or a parameter.
struct Declared {
    name: String,
    kind: String,
}

impl Abi {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", |token| token)
    }
    fn next(&mut self) -> String {
        self.at += 1;
        self.tokens.get(self.at - 1).cloned().unwrap_or_default()
    }
    fn takes(&mut self, token: &str) -> bool {
        let found = self.peek() == token;
        self.at += found as usize;
        found
    }
    fn expect(&mut self, token: &str) -> Result<(), String> {
        match self.next() {
            found if found == token => Ok(()),
            found => Err(format!(
                "'{}' where '{}' should be, behind {:?}",
                found,
                token,
                &self.tokens[self.at.saturating_sub(9)..self.at.min(self.tokens.len())]
            )),
        }
    }

    fn read(&mut self) -> Result<(), String> {
        while self.at < self.tokens.len() {
            match self.next().as_str() {
                "enum" => self.read_enum()?,
                "typedef" if self.takes("struct") => self.read_struct()?,
                "typedef" => self.read_function_type()?,
                "SWY_API" => self.read_function()?,
                "static" => self.skip_inline_function(),
                "extern" => self.at += 4, // "C" {
                "}" => {}
                other => return Err(format!("'{}' begins no declaration", other)),
            }
        }
        Ok(())
    }
    fn read_enum(&mut self) -> Result<(), String> {
        let name = self.next();
        let mut names = Vec::new();
        self.expect("{")?;
        while !self.takes("}") {
            names.push(self.next());
            self.expect("=")?;
            let value = self.next();
            writeln!(self.enumerators, "    {} = {},", names[names.len() - 1], value).unwrap();
            self.takes(",");
        }
        // The crate has an enumeration of its own for status codes.
        if name != "swy_status_code" {
            self.write_values(&name, &names);
        }
        self.expect(";")
    }
    /// `Score::SqrtSoftplus` for SWY_SCORE_SQRT_SOFTPLUS: without the words that
    /// all of the enumeration begin with.
    fn write_values(&mut self, name: &str, names: &[String]) {
        let words: Vec<Vec<&str>> = names.iter().map(|name| name.split('_').collect()).collect();
        let is_shared = |i: usize| words.iter().all(|w| w.len() > i + 1 && w[i] == words[0][i]);
        let shared = (0..).take_while(|&i| is_shared(i)).count();
        let comment = |of: &str| match self.comments.get(of).map_or("", |comment| comment) {
            "" => format!("`{}`.", of),
            comment => comment.to_string(),
        };
        let mut text = format!(
            "enumeration! {{\n    #[doc = {:?}]\n    {} {{\n",
            comment(name),
            camel(&name.split('_').skip(1).collect::<Vec<_>>())
        );
        for (name, words) in names.iter().zip(&words) {
            let member = camel(&words[shared..]);
            writeln!(text, "        #[doc = {:?}]\n        {} = {},", comment(name), member, name)
                .unwrap();
        }
        self.values += &(text + "    }\n}\n");
    }
    fn read_struct(&mut self) -> Result<(), String> {
        let name = self.next();
        self.expect("{")?;
        let mut fields = String::new();
        while !self.takes("}") {
            let kind = self.read_type()?;
            loop {
                let field = self.read_declarator(&kind)?;
                write!(fields, " {}: {},", field.name, field.kind).unwrap();
                if !self.takes(",") {
                    break;
                }
            }
            self.expect(";")?;
        }
        writeln!(self.structs, "    struct {} {{{} }}", name, fields).unwrap();
        self.expect(&name)?;
        self.expect(";")
    }
    /// `typedef void (*swy_body)(...)`: it may not be null.
    fn read_function_type(&mut self) -> Result<(), String> {
        let result = self.read_type()?;
        let declared = self.read_declarator(&result)?;
        let function = declared.kind.trim_start_matches("Option<").trim_end_matches('>');
        writeln!(self.types, "pub type {} = {};", declared.name, function).unwrap();
        self.expect(";")
    }
    fn read_function(&mut self) -> Result<(), String> {
        let result = self.read_type()?;
        let name = self.next();
        let parameters: Vec<String> = self
            .read_parameters()?
            .iter()
            .map(|parameter| format!("{}: {}", parameter.name, parameter.kind))
            .collect();
        let result = returned(&result);
        writeln!(self.functions, "    pub fn {}({}){};", name, parameters.join(", "), result)
            .unwrap();
        self.expect("SWY_NOEXCEPT")?;
        self.expect(";")
    }
    fn skip_inline_function(&mut self) {
        while self.next() != "{" {}
        let mut depth = 1;
        while depth > 0 && self.at < self.tokens.len() {
            match self.next().as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
        }
    }

    /// A type in front of a name, with its stars.
    fn read_type(&mut self) -> Result<String, String> {
        let is_const = self.takes("const");
        let name = self.next();
        let mut kind = match name.as_str() {
            "int8_t" => "i8",
            "int16_t" => "i16",
            "uint16_t" => "u16",
            "int32_t" => "i32",
            "uint32_t" => "u32",
            "int64_t" => "i64",
            "uint64_t" => "u64",
            "size_t" => "usize",
            "float" => "f32",
            "double" => "f64",
            "char" => "c_char",
            "void" => "c_void",
            other if other.starts_with("swy_") => other,
            other => return Err(format!("'{}' is no type", other)),
        }
        .to_string();
        while self.takes("*") {
            kind = format!("*{} {}", if is_const { "const" } else { "mut" }, kind);
        }
        Ok(kind)
    }
    /// A name of type `kind`, an array of it, or a pointer to a function that
    /// returns it.
    fn read_declarator(&mut self, kind: &str) -> Result<Declared, String> {
        if self.takes("(") {
            self.expect("*")?;
            let name = self.next();
            self.expect(")")?;
            let parameters: Vec<String> =
                self.read_parameters()?.into_iter().map(|parameter| parameter.kind).collect();
            let kind = format!(
                "Option<unsafe extern \"C\" fn({}){}>",
                parameters.join(", "),
                returned(kind)
            );
            return Ok(Declared { name, kind });
        }
        let name = match self.next() {
            name if name == "type" => "r#type".to_string(),
            name => name,
        };
        if !self.takes("[") {
            return Ok(Declared { name, kind: kind.to_string() });
        }
        let size = self.next();
        self.expect("]")?;
        Ok(Declared { name, kind: format!("[{}; {}]", kind, size) })
    }
    fn read_parameters(&mut self) -> Result<Vec<Declared>, String> {
        let mut parameters = Vec::new();
        self.expect("(")?;
        while !self.takes(")") {
            let kind = self.read_type()?;
            if kind == "c_void" && self.peek() == ")" {
                continue;
            }
            parameters.push(self.read_declarator(&kind)?);
            self.takes(",");
        }
        Ok(parameters)
    }
}

fn returned(kind: &str) -> String {
    match kind {
        "c_void" => String::new(),
        kind => format!(" -> {}", kind),
    }
}

/// "Q8_0", "F8E4M3" and "SqrtSoftplus" of their words.
fn camel(words: &[&str]) -> String {
    let mut name = String::new();
    for word in words {
        if !name.is_empty() && word.starts_with(char::is_numeric) {
            name.push('_');
        }
        let mut begins = true;
        for c in word.chars() {
            name.push(if begins { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() });
            begins = c.is_numeric();
        }
    }
    name
}

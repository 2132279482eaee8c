// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! Writes `sys` from `switchyard.h`: its structs, enumerators and functions. Part
//! of the build script, so that Rust says nothing of the C ABI a second time.
//! The headers are a small, regular dialect of C; anything else is refused.

use std::fmt::Write;

/// The Rust file for the texts of the headers, or what is not understood.
pub fn translate(headers: &[String]) -> Result<String, String> {
    let text: String = headers.iter().map(|header| plain(header)).collect();
    let mut abi = Abi { tokens: tokens(&text), at: 0, ..Abi::default() };
    abi.read()?;
    Ok(format!(
        "structs! {{\n{}}}\nenumerators! {{\n{}}}\nextern \"C\" {{\n{}}}\n{}",
        abi.structs, abi.enumerators, abi.functions, abi.types
    ))
}

/// Without comments and the preprocessor's lines.
fn plain(header: &str) -> String {
    let mut is_directive = false;
    let mut text = String::new();
    for line in header.lines() {
        let was_directive = is_directive;
        is_directive = (was_directive || line.trim_start().starts_with('#')) && line.ends_with('\\');
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
        self.next();
        self.expect("{")?;
        while !self.takes("}") {
            let enumerator = self.next();
            self.expect("=")?;
            let value = self.next();
            writeln!(self.enumerators, "    {} = {},", enumerator, value).unwrap();
            self.takes(",");
        }
        self.expect(";")
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
        writeln!(self.functions, "    pub fn {}({}){};", name, parameters.join(", "), result).unwrap();
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

// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! Translates the C headers to Rust: to module `sys`, which has their structs,
//! enumerators and functions, and to safe enumerations, structs and functions. This file
//! is part of the build script, so that no Rust code repeats the C ABI. It accepts only
//! the small, regular dialect of C in the headers.

use std::collections::BTreeMap;
use std::fmt::Write;

/// C structs for which no safe Rust struct is generated. The crate itself has a type for
/// each of them, or a function takes the struct's fields as separate arguments.
const OWN: &[&str] = &[
    "swy_config_names",
    "swy_block_q8_0",
    "swy_block_q8_1",
    "swy_block_q8_k",
    "swy_status",
    "swy_matrix",
    "swy_rows",
    "swy_executor",
    "swy_isa",
    "swy_preset",
    "swy_row_format",
    "swy_expert_tile",
    "swy_expert_gemm",
    "swy_experts_plan",
    "swy_experts_plan_inputs",
    "swy_experts_plan_outputs",
    "swy_experts_inputs",
    "swy_experts_options",
    "swy_expert_weights",
    "swy_pack_weights_inputs",
    "swy_pack_weights_outputs",
    "swy_layer_weights",
    "swy_combine_inputs",
    "swy_activate_outputs",
    "swy_gather_outputs",
    "swy_scatter_inputs",
    "swy_scatter_outputs",
    "swy_quantize_inputs",
    "swy_quantize_outputs",
    "swy_dispatch_inputs",
    "swy_dispatch_outputs",
];
/// Exceptions: fields of inputs ("struct.field") with the Rust type to use for them. For
/// all other fields, the C type determines the Rust type.
const SPECIAL: &[(&str, &str)] = &[
    ("swy_hyper_inputs.streams", "Source<'a>"),
    ("swy_activate_inputs.gate", "Source<'a>"),
    ("swy_activate_inputs.offsets", "Option<&'a [i32]>"),
    ("swy_activate_inputs.tokens_per_expert", "Option<&'a [i32]>"),
    ("swy_aligned_inputs.expert_map", "Option<&'a [i32]>"),
    ("swy_aligned_inputs.scratch", "&'a mut [i32]"),
    ("swy_bucket_inputs.scratch", "&'a mut [i32]"),
    ("swy_map_inputs.scratch", "&'a mut [i32]"),
    ("swy_replica_inputs.scratch", "&'a mut [i32]"),
];

/// Translates the headers. Returns the names and texts of the files that the crate
/// includes, or an error.
pub fn translate(headers: &[String]) -> Result<Vec<(&'static str, String)>, String> {
    let text: String = headers.iter().map(|header| plain(header)).collect();
    let mut abi = Abi {
        tokens: tokens(&text),
        comments: comments(headers),
        macros: macros(headers),
        ..Abi::default()
    };
    abi.read()?;
    let structs = abi.structs.clone();
    structs.iter().try_for_each(|of| abi.write_struct(of))?;
    let sys = format!(
        "structs! {{\n{}}}\ninitial! {{\n{}}}\nenumerators! {{\n{}}}\nextern \"C\" {{\n{}}}\n{}",
        abi.sys, abi.initial, abi.enumerators, abi.functions, abi.types
    );
    Ok(vec![
        ("sys.rs", sys),
        ("values.rs", abi.values),
        ("options.rs", abi.options),
        ("views.rs", abi.views),
        ("config.rs", abi.config),
        ("functions.rs", abi.safe_functions),
    ])
}

/// Returns the comments of the headers, by the name of the thing that they describe:
/// "swy_x" for an enumeration or a struct, "swy_x()" for a function, "SWY_X" for an
/// enumerator, and "swy_x.field" for a field.
fn comments(headers: &[String]) -> BTreeMap<String, String> {
    let mut comments: BTreeMap<String, String> = BTreeMap::new();
    let mut above = String::new();
    let (mut of, mut beside) = (String::new(), String::new());
    for line in headers.iter().flat_map(|header| header.lines()) {
        let (code, comment) = line.split_once("//").unwrap_or((line, ""));
        let words: Vec<&str> = code.split_whitespace().collect();
        // The line continues a comment beside a field or an enumerator.
        if words.is_empty() && line.starts_with("   ") && !beside.is_empty() {
            *comments.get_mut(&beside).unwrap() += comment;
            continue;
        }
        beside = String::new();
        if words.is_empty() {
            above = if comment.is_empty() { String::new() } else { above + comment };
            continue;
        }
        let name = match words[..] {
            ["enum", name, ..] => name.to_string(),
            ["typedef", "struct", name, ..] => {
                of = name.to_string();
                name.to_string()
            }
            [name, "=", ..] => name.to_string(),
            ["SWY_API", _, call, ..] => call.split('(').next().unwrap().to_string() + "()",
            [.., name] => format!("{}.{}", of, name.trim_end_matches(';')),
            [] => unreachable!(),
        };
        if !comment.is_empty() {
            beside = name.clone();
        }
        comments.insert(name, std::mem::take(&mut above) + comment);
    }
    comments
}
/// Returns a comment as a sentence of rustdoc. Brackets become code, because rustdoc
/// would read them as links.
fn documented(text: &str) -> String {
    let mut depth = 0;
    let mut doc = String::new();
    for c in text.chars() {
        if c == '[' {
            if depth == 0 {
                let word = doc.rfind(|c: char| !c.is_alphanumeric() && c != '_');
                doc.insert(word.map_or(0, |at| at + 1), '`');
            }
            depth += 1;
        }
        doc.push(c);
        if depth > 0 && (c == ']' || c == ')') {
            depth -= 1;
            doc += if depth == 0 { "`" } else { "" };
        }
    }
    let end = if doc.ends_with(|c: char| c == '.' || c == ':') { "" } else { "." };
    // If the sentence starts with a C name, the name keeps its lower-case letter.
    match doc.split(' ').next() {
        Some(word) if word.contains('_') => doc + end,
        _ => doc[..1].to_uppercase() + &doc[1..] + end,
    }
}

/// Returns the initialiser lists that macros define, by the macro's name: the values
/// between the macro's braces.
fn macros(headers: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut macros = BTreeMap::new();
    for header in headers {
        let text = header.replace("\\\n", " ");
        for line in text.lines().filter_map(|line| line.strip_prefix("#define ")) {
            let (name, body) = line.split_once(' ').unwrap_or((line, ""));
            if let Some(body) = body.trim().strip_prefix('{') {
                macros.insert(name.to_string(), values(body));
            }
        }
    }
    macros
}
/// Returns the comma-separated values of `body` up to the closing brace, without spaces
/// and comments.
fn values(body: &str) -> Vec<String> {
    let (mut all, mut depth) = (vec![String::new()], 0);
    let mut rest = body;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '/' => rest = rest.split_once("*/").map_or("", |(_, rest)| rest),
            '}' if depth == 0 => break,
            ',' if depth == 0 => all.push(String::new()),
            c if c.is_whitespace() => {}
            c => {
                depth += (c == '{') as usize;
                depth -= (c == '}') as usize;
                all.last_mut().unwrap().push(c);
            }
        }
    }
    all
}

/// Returns the header without comments and preprocessor directives.
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

/// The name and type of a field or a parameter.
#[derive(Clone)]
struct Declared {
    name: String,
    kind: String,
}
#[derive(Clone)]
struct Struct {
    name: String,
    fields: Vec<Declared>,
}
#[derive(Default)]
struct Abi {
    tokens: Vec<String>,
    at: usize,
    comments: BTreeMap<String, String>,
    macros: BTreeMap<String, Vec<String>>,
    structs: Vec<Struct>,
    sys: String,
    initial: String,
    enumerators: String,
    functions: String,
    types: String,
    values: String,
    options: String,
    views: String,
    config: String,
    safe_functions: String,
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
                "extern" => self.at += 4, // skips the tokens " C " {
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
        // The crate itself defines `Code` for swy_status_code.
        if name != "swy_status_code" {
            self.write_values(&name, &names);
        }
        self.expect(";")
    }
    /// Writes an enumeration. The names of its members lack the words with which all C
    /// enumerators begin: SWY_SCORE_SQRT_SOFTPLUS becomes `Score::SqrtSoftplus`.
    fn write_values(&mut self, name: &str, names: &[String]) {
        let words: Vec<Vec<&str>> = names.iter().map(|name| name.split('_').collect()).collect();
        let is_shared = |i: usize| words.iter().all(|w| w.len() > i + 1 && w[i] == words[0][i]);
        let shared = (0..).take_while(|&i| is_shared(i)).count();
        let mut text =
            format!("enumeration! {{\n    #[doc = {:?}]\n    {} {{\n", self.doc(name), twin(name));
        for (name, words) in names.iter().zip(&words) {
            let member = camel(&words[shared..]);
            let doc = self.doc(name);
            writeln!(text, "        #[doc = {:?}]\n        {} = {},", doc, member, name).unwrap();
        }
        self.values += &(text + "    }\n}\n");
    }
    fn comment(&self, of: &str) -> &str {
        self.comments.get(of).map_or("", |comment| comment.trim())
    }
    fn doc(&self, of: &str) -> String {
        let comment = self.comment(of);
        // A comment that begins with "enum NAME" gives the type of the field.
        let (of, comment) = match comment.strip_prefix("enum ") {
            Some(rest) => rest.split_once(", ").unwrap_or((rest, "")),
            None => (of, comment),
        };
        match if comment.is_empty() { self.comment(of) } else { comment } {
            "" => format!("`{}` of C.", of),
            comment => documented(comment),
        }
    }
    fn read_struct(&mut self) -> Result<(), String> {
        let name = self.next();
        self.expect("{")?;
        let mut fields = Vec::new();
        while !self.takes("}") {
            let kind = self.read_type()?;
            loop {
                fields.push(self.read_declarator(&kind)?);
                if !self.takes(",") {
                    break;
                }
            }
            self.expect(";")?;
        }
        self.expect(&name)?;
        self.expect(";")?;
        let text: String =
            fields.iter().map(|field| format!(" {}: {},", field.name, field.kind)).collect();
        writeln!(self.sys, "    struct {} {{{} }}", name, text).unwrap();
        self.structs.push(Struct { name, fields });
        Ok(())
    }

    /// Returns the Rust expression for the C constant `value` of type `kind`.
    fn value(&self, kind: &str, value: &str) -> Result<String, String> {
        if let Some(of) = self.structs.iter().find(|of| of.name == kind) {
            let list = match self.macros.get(value) {
                Some(list) => list.clone(),
                None => values(value.trim_start_matches('{')),
            };
            if list.len() != of.fields.len() {
                return Err(format!("{}: {} values instead of {:?}", kind, list.len(), list));
            }
            let fields: Result<Vec<String>, String> = of
                .fields
                .iter()
                .zip(&list)
                .map(|(field, value)| {
                    Ok(format!("{}: {}", field.name, self.value(&field.kind, value)?))
                })
                .collect();
            return Ok(format!("{} {{ {} }}", kind, fields?.join(", ")));
        }
        Ok(match value {
            "NULL" if kind.starts_with("*const") => "std::ptr::null()".to_string(),
            "NULL" if kind.starts_with('*') => "std::ptr::null_mut()".to_string(),
            "NULL" => "None".to_string(),
            "{0}" if kind.starts_with('[') => {
                format!("[0; {}", kind.split_once("; ").map_or("", |(_, size)| size))
            }
            "0" if kind == "f32" => "0.0".to_string(),
            value if kind == "f32" => value.trim_end_matches('f').to_string(),
            value => value.replace("(uint32_t)sizeof(", "size_of::<").replace(')', ">()"),
        })
    }
    /// Writes the constant for the macro that initialises a struct, and the safe Rust
    /// struct.
    fn write_struct(&mut self, of: &Struct) -> Result<(), String> {
        let of_name = of.name.trim_start_matches("swy_").to_uppercase();
        let names = [format!("SWY_{}_INIT", of_name), format!("SWY_NO_{}", of_name)];
        let initial = names.iter().find(|name| self.macros.contains_key(*name));
        if let Some(name) = initial {
            let value = self.value(&of.name, name)?;
            writeln!(self.initial, "    {}: {} = {};", name, of.name, value).unwrap();
        }
        if of.name == "swy_model_config" {
            self.write_config(of);
        } else if !OWN.contains(&of.name.as_str())
            && !of.name.ends_with("_span")
            && !of.name.starts_with("swy_optional_")
        {
            let are_views = of.fields.iter().any(|f| is_view(&f.kind) || f.kind == "swy_map_rows");
            match initial {
                Some(initial) if !are_views => self.write_options(of, initial),
                _ => self.write_views(of),
            }
        }
        Ok(())
    }
    fn write_fields(&self, of: &Struct, kind_of: impl Fn(&Declared, &str) -> String) -> String {
        let mut text = String::new();
        let is_hidden =
            |f: &&Declared| f.name == "size" || f.name == "report" || f.kind == "swy_config_names";
        for field in of.fields.iter().filter(|f| !is_hidden(f)) {
            let name = format!("{}.{}", of.name, field.name);
            let doc = self.doc(&name);
            writeln!(
                text,
                "    #[doc = {:?}]\n    {}: {},",
                doc,
                field.name,
                kind_of(field, &name)
            )
            .unwrap();
        }
        text
    }
    /// Returns the Rust type of a field. If the comment of an int32_t field names an
    /// enumeration, that is the type; otherwise the field is a flag, of type bool.
    fn plain_kind(&self, kind: &str, name: &str) -> String {
        match kind {
            "i32" => {
                self.comment(name).split_once("enum ").map_or("bool".to_string(), |(_, rest)| {
                    let is_name = |c: char| c.is_alphanumeric() || c == '_';
                    twin(rest.split(|c| !is_name(c)).next().unwrap())
                })
            }
            kind if kind.starts_with("swy_") => twin(kind),
            kind => kind.to_string(),
        }
    }
    fn write_options(&mut self, of: &Struct, initial: &str) {
        let fields = self.write_fields(of, |field, name| self.plain_kind(&field.kind, name));
        let text = format!(
            "options! {{\n    #[doc = {:?}]\n{}    {} = {} {} [{}] {{\n{}}} }}\n",
            self.doc(&of.name),
            if fields.contains("f32") { "" } else { "    #[derive(Eq)]\n" },
            twin(&of.name),
            of.name,
            initial,
            own(of),
            fields
        );
        self.options += &text;
    }
    fn write_views(&mut self, of: &Struct) {
        // Structs of inputs, and structs nested in them, become views that are only read.
        // Structs that only outputs use become views that the library writes.
        let is_read = of.name.ends_with("_inputs")
            || (of.fields[0].name != "size" && of.name != "swy_map_rows");
        let fields = self.write_fields(of, |field, name| {
            let special = SPECIAL.iter().find(|(of, _)| *of == name);
            match (special, field.kind.as_str(), is_read) {
                (Some((_, kind)), _, _) => kind.to_string(),
                (_, "swy_matrix", true) => "Matrix<'a>".to_string(),
                (_, "swy_matrix", false) => "MatrixMut<'a>".to_string(),
                (_, "swy_rows", true) => "Rows<'a>".to_string(),
                (_, "swy_rows", false) => "RowsMut<'a>".to_string(),
                (_, "swy_i32_span", true) => "&'a [i32]".to_string(),
                (_, "swy_i32_span", false) => "&'a mut [i32]".to_string(),
                (_, "swy_i64_span", false) => "&'a mut [i64]".to_string(),
                (_, "swy_map_rows", _) => "MapRows<'a>".to_string(),
                (_, kind, _) => self.plain_kind(kind, name),
            }
        });
        let mut traits = Vec::new();
        if is_read && !fields.contains("&'a mut") {
            traits.extend(["Clone", "Copy"]);
        }
        if !fields.contains("SharedGate") {
            traits.push("Default");
        }
        let has_report = of.fields.iter().any(|field| field.name == "report");
        let text = format!(
            "views! {{\n    #[doc = {:?}]\n    #[derive({})]\n    {} = {} {}[{}] {{\n{}}} }}\n",
            self.doc(&of.name),
            traits.join(", "),
            twin(&of.name),
            of.name,
            if has_report { "(report) " } else { "" },
            own(of),
            fields
        );
        self.views += &text;
    }
    fn write_config(&mut self, of: &Struct) {
        let fields = self.write_fields(of, |field, _| {
            match field.kind.as_str() {
                "swy_optional_count" => "u32",
                "swy_optional_flag" => "bool",
                "swy_optional_number" => "f32",
                _ => "String",
            }
            .to_string()
        });
        self.config = format!("config! {{\n{}}}\n", fields);
    }

    /// Reads a declaration like `typedef void (*swy_body)(...)`. Writes the Rust type without
    /// `Option`, so that its values cannot be null.
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
        let parameters = self.read_parameters()?;
        self.write_safe_function(&name, &parameters);
        let parameters: Vec<String> = parameters
            .iter()
            .map(|parameter| format!("{}: {}", parameter.name, parameter.kind))
            .collect();
        let result = returned(&result);
        writeln!(self.functions, "    pub fn {}({}){};", name, parameters.join(", "), result)
            .unwrap();
        self.expect("SWY_NOEXCEPT")?;
        self.expect(";")
    }
    /// Writes the safe Rust function for a C function. Writes none if a struct of the
    /// function is in `OWN`, or if Rust has to check the inputs first.
    fn write_safe_function(&mut self, name: &str, parameters: &[Declared]) {
        let structs: Vec<&str> = parameters
            .iter()
            .filter_map(|parameter| parameter.kind.strip_prefix("*const "))
            .collect();
        let (inputs, outputs, options, has_executor) = match structs[..] {
            [inputs, outputs, options, "swy_executor"] => (inputs, outputs, options, true),
            [inputs, outputs, options] => (inputs, outputs, options, false),
            _ => return,
        };
        let special: Vec<&str> = SPECIAL
            .iter()
            .filter(|(of, _)| of.split('.').next() == Some(inputs))
            .map(|(_, kind)| *kind)
            .collect();
        let is_written = |kind: &&str| kind.starts_with("&'a mut");
        if [inputs, outputs, options].iter().any(|of| OWN.contains(of))
            || !special.iter().all(is_written)
        {
            return;
        }
        let has_report = self
            .structs
            .iter()
            .any(|of| of.name == outputs && of.fields.iter().any(|f| f.name == "report"));
        let (report, raw, result, end) = match has_report {
            true => ("report", "raw(report)", "Report", ""),
            false => ("_", "view()", "()", ".map(drop)"),
        };
        let call = format!("sys::{}(&inputs, &outputs, &options.to_c()", name);
        let (pool, call) = match has_executor {
            true => (
                "    pool: crate::Pool<'_>,\n",
                format!("pool.with(|pool| unsafe {{ {}, pool) }})", call),
            ),
            false => ("", format!("unsafe {{ {}) }}", call)),
        };
        let text = format!(
            "#[doc = {:?}]
pub fn {}(
    inputs: {}{}<'_>,
    outputs: {}<'_>,
    options: &{},
{}) -> Result<{}, crate::Error> {{
    with_report(|{}| {{
        let (inputs, outputs) = (inputs.view(), outputs.{});
        // SAFETY: the views point into slices that are borrowed during the call.
        {}
    }}){}
}}
",
            self.doc(&format!("{}()", name)),
            name.trim_start_matches("swy_"),
            if special.is_empty() { "&" } else { "" },
            twin(inputs),
            twin(outputs),
            twin(options),
            pool,
            result,
            report,
            raw,
            call,
            end
        );
        self.safe_functions += &text;
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

    /// Reads the type in front of a name, including pointer stars.
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
    /// Reads a declared name, whose type is `kind`, an array of `kind`, or a pointer to a
    /// function that returns `kind`.
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
            // These names are keywords in Rust but not in C.
            name if ["in", "match", "move", "ref", "type", "use", "where"].contains(&&name[..]) => {
                format!("r#{}", name)
            }
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

fn is_view(kind: &str) -> bool {
    kind == "swy_matrix" || kind == "swy_rows" || kind.ends_with("_span")
}

/// Returns the initialiser of a struct's `size` field, if the struct has that field.
fn own(of: &Struct) -> String {
    match of.fields[0].name.as_str() {
        "size" => format!("size: sys::size_of::<sys::{}>()", of.name),
        _ => String::new(),
    }
}
/// Returns "RouteOptions" for "swy_route_options".
fn twin(name: &str) -> String {
    camel(&name.split('_').skip(1).collect::<Vec<_>>())
}
/// Returns "Q8_0", "F8E4M3" or "SqrtSoftplus" for the words of a C name.
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

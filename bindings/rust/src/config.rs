// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::error::check;
use crate::json::{self, Value};
use crate::{sys, Error, Preset, Report};
use std::ffi::{CStr, CString};

/// A field, and its form in C. Texts of C are those of `texts`.
trait Field: Sized {
    type C;
    fn to_c(&self, texts: &mut Vec<CString>) -> Result<Self::C, Error>;
    /// # Safety
    /// A text is null or ends with a zero.
    unsafe fn from_c(c: Self::C) -> Self;
}
macro_rules! values {
    ($($type:ty = $raw:ident, $to_c:expr, $from_c:expr;)*) => {$(
        impl Field for Option<$type> {
            type C = sys::$raw;
            fn to_c(&self, _: &mut Vec<CString>) -> Result<Self::C, Error> {
                let to_c: fn($type) -> _ = $to_c;
                let value = to_c(self.unwrap_or_default());
                Ok(sys::$raw { is_set: self.is_some().into(), value })
            }
            unsafe fn from_c(c: Self::C) -> Self {
                let from_c: fn(_) -> $type = $from_c;
                if c.is_set != 0 { Some(from_c(c.value)) } else { None }
            }
        }
    )*};
}
values! {
    u32 = swy_optional_count, |count| count, |count| count;
    bool = swy_optional_flag, |flag| flag.into(), |flag: i32| flag != 0;
    f32 = swy_optional_number, |number| number, |number| number;
}
impl Field for Option<String> {
    type C = *const std::os::raw::c_char;
    fn to_c(&self, texts: &mut Vec<CString>) -> Result<Self::C, Error> {
        let text = match self {
            None => return Ok(std::ptr::null()),
            Some(text) => CString::new(text.as_str())
                .map_err(|_| Error::invalid("ModelConfig: a text has a zero byte"))?,
        };
        // Taken behind the move into texts; a later push moves no bytes of it.
        texts.push(text);
        Ok(texts.last().map_or(std::ptr::null(), |text| text.as_ptr()))
    }
    unsafe fn from_c(c: Self::C) -> Self {
        if c.is_null() {
            return None;
        }
        // SAFETY: the caller's promise.
        Some(unsafe { CStr::from_ptr(c) }.to_string_lossy().into_owned())
    }
}

macro_rules! config {
    ($($(#[$doc:meta])* $field:ident: $type:ty),* $(,)?) => {
        /// The fields of a config.json (or of its text_config) that a layer's options
        /// depend on. `None`: the file does not have one, or has null.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct ModelConfig { $($(#[$doc])* pub $field: Option<$type>),* }
        impl ModelConfig {
            fn to_c(&self, texts: &mut Vec<CString>) -> Result<sys::swy_model_config, Error> {
                Ok(sys::swy_model_config {
                    size: sys::size_of::<sys::swy_model_config>(),
                    $($field: self.$field.to_c(texts)?),*
                })
            }
            /// # Safety
            /// Texts are null or end with a zero.
            unsafe fn from_c(c: &sys::swy_model_config) -> Self {
                // SAFETY: the caller's promise.
                unsafe { ModelConfig { $($field: Field::from_c(c.$field)),* } }
            }
        }
    };
}
include!(concat!(env!("OUT_DIR"), "/config.rs"));

/// The part of a configuration that is about the text model, and its model_type.
fn text_part(config: &Value) -> (&Value, Option<&str>) {
    let family = |part: &'_ Value| part.get("model_type").and_then(Value::text).map(str::to_owned);
    let is_known = |part: &Value| family(part).map_or(false, |name| Preset::find(&name).is_ok());
    let part = match config.get("text_config") {
        Some(text) if !is_known(config) && is_known(text) => text,
        _ => config,
    };
    (part, part.get("model_type").and_then(Value::text))
}
fn read(text: &str) -> Result<Value, Error> {
    match json::parse(text) {
        None => Err(Error::invalid("ModelConfig: the text is malformed JSON")),
        Some(object @ Value::Object(_)) => Ok(object),
        Some(_) => Err(Error::invalid("ModelConfig: the text is not a JSON object")),
    }
}

impl ModelConfig {
    /// The text of a config.json; of its text_config, where only that has a
    /// model_type of [`Preset::families`].
    pub fn from_json(text: &str) -> Result<ModelConfig, Error> {
        ModelConfig::from_object(text_part(&read(text)?).0)
    }
    fn from_object(object: &Value) -> Result<ModelConfig, Error> {
        let mut texts = Vec::new();
        let mut raw = ModelConfig::default().to_c(&mut texts)?;
        let pairs = match object {
            Value::Object(pairs) => pairs.as_slice(),
            _ => &[],
        };
        for (key, value) in pairs {
            let key = match CString::new(key.as_str()) {
                Ok(key) => key,
                Err(_) => continue, // no field has such a name
            };
            let status = match value {
                // SAFETY: a string and a struct that says its size.
                Value::Number(number) => unsafe {
                    sys::swy_set_number(key.as_ptr(), *number, &mut raw)
                },
                Value::Text(text) => {
                    let text = Some(text.clone()).to_c(&mut texts)?;
                    // SAFETY: the same; texts lives longer than raw.
                    unsafe { sys::swy_set_text(key.as_ptr(), text, &mut raw) }
                }
                _ => continue,
            };
            check(status, Report::default())?;
        }
        // SAFETY: texts are CStrings.
        Ok(unsafe { ModelConfig::from_c(&raw) })
    }
}

impl Preset {
    /// A family as a checkpoint's configuration has it. An error names the field that
    /// is missing or wrong.
    pub fn configured(family: &str, config: &ModelConfig) -> Result<Preset, Error> {
        let mut texts = Vec::new();
        let config = config.to_c(&mut texts)?;
        // SAFETY: structs that say their sizes, and texts that live as long.
        Preset::get(
            "ApplyConfig: preset: family has a zero byte",
            family,
            |_, preset, route| unsafe { sys::swy_apply_config(&config, preset, route) },
        )
    }
    /// The same from the text of a config.json, whose model_type is the family.
    pub fn from_json(text: &str) -> Result<Preset, Error> {
        let config = read(text)?;
        let (part, family) = text_part(&config);
        let family = family.ok_or(Error::invalid("ModelConfig: model_type is missing"))?;
        Preset::configured(family, &ModelConfig::from_object(part)?)
    }
}

// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::error::check;
use crate::json::{self, Value};
use crate::{sys, Error, Preset, Report};
use std::ffi::{CStr, CString};

/// A field of a `ModelConfig`, which converts to and from its C type. C strings point
/// into `texts`.
trait Field: Sized {
    type C;
    fn to_c(&self, texts: &mut Vec<CString>) -> Result<Self::C, Error>;
    /// # Safety
    /// A text must be null or end with a zero.
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
        // The pointer is taken after the move into `texts`. It stays valid, because a
        // later push does not move a string's bytes.
        texts.push(text);
        Ok(texts.last().map_or(std::ptr::null(), |text| text.as_ptr()))
    }
    unsafe fn from_c(c: Self::C) -> Self {
        if c.is_null() {
            return None;
        }
        // SAFETY: `c` is not null, and the caller guarantees that it ends with a zero.
        Some(unsafe { CStr::from_ptr(c) }.to_string_lossy().into_owned())
    }
}

macro_rules! config {
    ($($(#[$doc:meta])* $field:ident: $type:ty),* $(,)?) => {
        /// The fields of a config.json (or of its text_config) on which a layer's options
        /// depend. A field is `None` if it is missing or null.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct ModelConfig { $($(#[$doc])* pub $field: Option<$type>),* }
        impl ModelConfig {
            fn to_c(&self, texts: &mut Vec<CString>) -> Result<sys::swy_model_config, Error> {
                Ok(sys::swy_model_config {
                    size: sys::size_of::<sys::swy_model_config>(),
                    $($field: self.$field.to_c(texts)?,)*
                    names: sys::SWY_NO_CONFIG_NAMES,
                })
            }
            /// # Safety
            /// Texts must be null or end with a zero.
            unsafe fn from_c(c: &sys::swy_model_config) -> Self {
                // SAFETY: the caller guarantees that texts are null or end with a zero.
                unsafe { ModelConfig { $($field: Field::from_c(c.$field)),* } }
            }
        }
    };
}
include!(concat!(env!("OUT_DIR"), "/config.rs"));

/// Names of the objects in a config.json that may have the text model's fields.
const TEXT: [&str; 4] = ["text_config", "language_config", "llm_config", "thinker_config"];

/// Returns the fields of the text model, and the family's name. The name is the file's
/// model_type if the library knows it, or else the model_type in the object of the fields.
fn text_part(config: &Value) -> Result<(ModelConfig, Option<&str>), Error> {
    let family = |part: &'_ Value| part.get("model_type").and_then(Value::text).map(str::to_owned);
    let is_known = |part: &Value| family(part).map_or(false, |name| Preset::find(&name).is_ok());
    let inside = TEXT.iter().find_map(|&name| match config.get(name) {
        Some(text @ Value::Object(_)) => Some(text),
        _ => None,
    });
    let own = config.get("model_type").and_then(Value::text);
    if let Some(inside) = inside {
        let (fields, family) = text_part(inside)?;
        if fields.num_experts.is_some() {
            return Ok((fields, if is_known(config) { own } else { family.or(own) }));
        }
    }
    Ok((ModelConfig::from_object(config)?, own))
}
fn read(text: &str) -> Result<Value, Error> {
    match json::parse(text) {
        None => Err(Error::invalid("ModelConfig: the text is malformed JSON")),
        Some(object @ Value::Object(_)) => Ok(object),
        Some(_) => Err(Error::invalid("ModelConfig: the text is not a JSON object")),
    }
}
/// Returns the value of a list with a value for each layer, if all of its values are
/// equal. If they differ, returns NaN, which no field accepts.
fn of_all_layers(list: &[Value]) -> &Value {
    let same = |value: &Value| match (value, &list[0]) {
        (Value::Number(a), Value::Number(b)) => a == b,
        (Value::Text(a), Value::Text(b)) => a == b,
        _ => false,
    };
    if list.iter().all(same) {
        &list[0]
    } else {
        &Value::Number(f64::NAN)
    }
}

impl ModelConfig {
    /// Reads the text of a config.json, or of the object in it that has the text model's
    /// fields (such as text_config). A list is read as one value if all layers have the
    /// same value.
    pub fn from_json(text: &str) -> Result<ModelConfig, Error> {
        text_part(&read(text)?).map(|(fields, _)| fields)
    }
    fn from_object(object: &Value) -> Result<ModelConfig, Error> {
        let mut texts = Vec::new();
        let mut raw = ModelConfig::default().to_c(&mut texts)?;
        ModelConfig::set_all("", object, &mut raw, &mut texts)?;
        // SAFETY: the texts in `raw` are CStrings in `texts`.
        Ok(unsafe { ModelConfig::from_c(&raw) })
    }
    /// Sets fields from the keys and values of an object and of the objects in it. A key
    /// of an inner object has the outer key in front: "ffn_config.moe_top_k".
    fn set_all(
        outer: &str,
        object: &Value,
        raw: &mut sys::swy_model_config,
        texts: &mut Vec<CString>,
    ) -> Result<(), Error> {
        let pairs = match object {
            Value::Object(pairs) => pairs.as_slice(),
            _ => &[],
        };
        for (key, value) in pairs {
            let path = format!("{}{}", outer, key);
            let value = match value {
                Value::List(list) if list.is_empty() => continue,
                Value::List(list) => of_all_layers(list),
                Value::Object(_) => {
                    ModelConfig::set_all(&format!("{}.", path), value, raw, texts)?;
                    continue;
                }
                value => value,
            };
            let key = match CString::new(path) {
                Ok(key) => key,
                Err(_) => continue, // no field has such a name
            };
            let status = match value {
                // SAFETY: the call gets a CString, and the `size` of the struct is set.
                Value::Number(number) => unsafe { sys::swy_set_number(key.as_ptr(), *number, raw) },
                Value::Text(text) => {
                    let text = Some(text.clone()).to_c(texts)?;
                    // SAFETY: the call gets CStrings, and the `size` of the struct is set.
                    // `texts` lives longer than `raw`, which points into it.
                    unsafe { sys::swy_set_text(key.as_ptr(), text, raw) }
                }
                // SAFETY: the call gets a CString, and the `size` of the struct is set.
                _ => unsafe { sys::swy_set_null(key.as_ptr(), raw) },
            };
            check(status, Report::default())?;
        }
        Ok(())
    }
}

impl Preset {
    /// Returns the preset of a family with the values of a checkpoint's configuration. An
    /// error names the field that is missing or wrong.
    pub fn configured(family: &str, config: &ModelConfig) -> Result<Preset, Error> {
        let mut texts = Vec::new();
        let config = config.to_c(&mut texts)?;
        // SAFETY: the `size` of each struct is set, and the texts outlive the call.
        Preset::get(
            "ApplyConfig: preset: family has a zero byte",
            family,
            |_, preset, route| unsafe { sys::swy_apply_config(&config, preset, route) },
        )
    }
    /// Returns the preset of the family that model_type names in `text`, the text of a
    /// config.json, with the values of that file.
    pub fn from_json(text: &str) -> Result<Preset, Error> {
        let config = read(text)?;
        let (fields, family) = text_part(&config)?;
        let family = family.ok_or(Error::invalid("ModelConfig: model_type is missing"))?;
        Preset::configured(family, &fields)
    }
}

// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/presets.h"

#include <cstddef>
#include <cstring>

#include "src/c/call.h"

using namespace switchyard::c;

namespace switchyard::c {
namespace {

struct StructTexts {
  ArgumentTexts argument;
  const char* no_room;
};
struct PresetTexts {
  StructTexts preset, options, activate, combine, form;
};
#define SWITCHYARD_C_STRUCT_TEXTS(Function, name)                        \
  {                                                                      \
    SWITCHYARD_C_ARGUMENT_TEXTS(Function, name),                         \
        Function ": " name                                               \
                 ": too short, of a version that lacks a field of this " \
                 "family"                                                \
  }
#define SWITCHYARD_C_PRESET_TEXTS(Function)                     \
  PresetTexts {                                                 \
    SWITCHYARD_C_STRUCT_TEXTS(Function, "preset"),              \
        SWITCHYARD_C_STRUCT_TEXTS(Function, "options"),         \
        SWITCHYARD_C_STRUCT_TEXTS(Function, "preset.activate"), \
        SWITCHYARD_C_STRUCT_TEXTS(Function, "preset.combine"),  \
        SWITCHYARD_C_STRUCT_TEXTS(Function, "preset.form")      \
  }

// The structs that together hold a Preset in C. Each may be null.
class PresetStructs {
 public:
  PresetStructs(swy_preset* preset, swy_route_options* options,
                const PresetTexts& texts)
      : texts_(texts), preset_(preset), options_(options) {}

  // Finds and checks the structs that the caller gave.
  Status Check() {
    if (preset_ != nullptr) {
      const Status status = c::Check(preset_, texts_.preset.argument);
      if (!status.ok()) return status;
      // The end of the struct's first version. A struct may end there, because
      // callers who do not know later fields do not need them.
      constexpr size_t kEnd =
          offsetof(swy_preset, top_k) + sizeof(preset_->top_k);
      if (preset_->size < kEnd) return Invalid(texts_.preset.no_room);
      activate_ = Get(&swy_preset::activate, offsetof(swy_preset, activate));
      combine_ = Get(&swy_preset::combine, offsetof(swy_preset, combine));
      form_ = Get(&swy_preset::form, offsetof(swy_preset, form));
    }
    Status status = CheckStruct(options_, texts_.options);
    if (status.ok()) status = CheckStruct(activate_, texts_.activate);
    if (status.ok()) status = CheckStruct(combine_, texts_.combine);
    if (status.ok()) status = CheckStruct(form_, texts_.form);
    return status;
  }
  // Writes all of `from`, or nothing if a struct is too short.
  Status Write(const Preset& from) const {
    if (!HasRoom(from.route, options_)) return Invalid(texts_.options.no_room);
    if (!HasRoom(from.activate, activate_)) {
      return Invalid(texts_.activate.no_room);
    }
    if (!HasRoom(from.combine, combine_)) {
      return Invalid(texts_.combine.no_room);
    }
    if (!HasRoom(from.form, form_)) return Invalid(texts_.form.no_room);
    if (preset_ != nullptr) WriteFields(from, preset_);
    if (options_ != nullptr) WriteFields(from.route, options_);
    if (activate_ != nullptr) WriteFields(from.activate, activate_);
    if (combine_ != nullptr) WriteFields(from.combine, combine_);
    if (form_ != nullptr) WriteFields(from.form, form_);
    return Status();
  }

 private:
  template <class C>
  C* Get(C* swy_preset::*field, size_t offset) const {
    return offset + sizeof(C*) <= preset_->size ? preset_->*field : nullptr;
  }
  template <class C>
  static Status CheckStruct(const C* given, const StructTexts& texts) {
    return given == nullptr ? Status() : c::Check(given, texts.argument);
  }
  template <class C>
  static bool HasRoom(const CppOf<C>& from, const C* given) {
    return given == nullptr || HasRoomFor(from, given);
  }

  const PresetTexts& texts_;
  swy_preset* const preset_;
  swy_route_options* const options_;
  swy_activate_options* activate_ = nullptr;
  swy_combine_options* combine_ = nullptr;
  swy_combine_form* form_ = nullptr;
};

constexpr StructTexts kTextsOfSetField = {
    SWITCHYARD_C_ARGUMENT_TEXTS("SetField", "config"),
    "SetField: config: is from a version without this field"};
constexpr StructTexts kTextsOfSetNull = {
    SWITCHYARD_C_ARGUMENT_TEXTS("SetNull", "config"),
    "SetNull: config: is from a version without this field"};
// Converts the struct to C++, calls set(fields), and converts it back.
template <class Set>
swy_status SetAny(swy_model_config* config, const Set& set,
                  const StructTexts& texts = kTextsOfSetField) {
  Argument<swy_model_config> given(config, texts.argument);
  if (!given.status.ok()) return ToC(given.status);
  const bool has_names =
      config != nullptr &&
      config->size >= offsetof(swy_model_config, names) + sizeof(ConfigNames);
  static_assert(sizeof(ConfigNames) == sizeof(swy_config_names));
  ConfigNames& names = given.value.names;
  if (has_names) std::memcpy(names.of, config->names.of, sizeof(names.of));
  Status status = set(&given.value);
  if (status.ok() && !HasRoomFor(given.value, config)) {
    status = Invalid(texts.no_room);
  }
  if (status.ok()) WriteFields(given.value, config);
  if (status.ok() && has_names) {
    std::memcpy(config->names.of, names.of, sizeof(names.of));
  }
  return ToC(status);
}

}  // namespace
}  // namespace switchyard::c

swy_status swy_set_number(const char* key, double value,
                          swy_model_config* config) noexcept {
  return SetAny(config, [key, value](switchyard::ModelConfig* fields) {
    return switchyard::SetField(key, value, fields);
  });
}
swy_status swy_set_text(const char* key, const char* text,
                        swy_model_config* config) noexcept {
  return SetAny(config, [key, text](switchyard::ModelConfig* fields) {
    return switchyard::SetField(key, text, fields);
  });
}
swy_status swy_set_null(const char* key, swy_model_config* config) noexcept {
  return SetAny(
      config,
      [key](switchyard::ModelConfig* fields) {
        return switchyard::SetNull(key, fields);
      },
      kTextsOfSetNull);
}

swy_status swy_find_preset(const char* family, swy_preset* preset,
                           swy_route_options* options) noexcept {
  constexpr PresetTexts texts = SWITCHYARD_C_PRESET_TEXTS("FindPreset");
  switchyard::Preset found;
  switchyard::Status status = switchyard::FindPreset(family, &found);
  PresetStructs structs(preset, options, texts);
  if (status.ok()) status = structs.Check();
  if (status.ok()) status = structs.Write(found);
  return ToC(status);
}

swy_status swy_apply_config(const swy_model_config* config, swy_preset* preset,
                            swy_route_options* options) noexcept {
  constexpr PresetTexts texts = SWITCHYARD_C_PRESET_TEXTS("ApplyConfig");
  const Argument<swy_model_config> given(
      config, SWITCHYARD_C_ARGUMENT_TEXTS("ApplyConfig", "config"));
  if (!given.status.ok()) return ToC(given.status);
  if (preset == nullptr) return ToC(Invalid(texts.preset.argument.null));
  PresetStructs structs(preset, options, texts);
  switchyard::Status status = structs.Check();
  if (!status.ok()) return ToC(status);
  switchyard::Preset applied;
  if (preset->family != nullptr) {
    // An unknown name leaves `applied` without a family, for which
    // ApplyConfig() returns the error.
    (void)switchyard::FindPreset(preset->family, &applied);
  }
  status = switchyard::ApplyConfig(given.value, &applied);
  if (status.ok()) status = structs.Write(applied);
  return ToC(status);
}

const char* swy_preset_family(size_t index) noexcept {
  const auto presets = switchyard::Presets();
  return index < presets.size ? presets.data[index].family : nullptr;
}

// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/cli/presets.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "src/calls/activate.h"
#include "src/calls/combine.h"
#include "src/calls/route.h"
#include "src/families.h"
#include "switchyard/presets.h"

namespace swy {
namespace {

namespace calls = switchyard::calls;
using switchyard::Preset;
using switchyard::families::Family;
using switchyard::families::kFamilies;
using switchyard::internal::ConfigField;
using switchyard::internal::NextName;

// Returns the shortest text that reads back as the same float.
std::string TextOf(double value) {
  char text[32];
  for (int digits = 6; digits <= 9; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    if (std::strtof(text, nullptr) == static_cast<float>(value)) break;
  }
  return text;
}

void Put(const std::string& name, const std::string& value, std::string* to) {
  *to += (to->empty() ? "" : " ") + name + "=" + value;
}

// Returns the options of "route", "activate" or "combine", written as for
// SetOption(): the option `first`, and all options that differ from their
// defaults.
std::string OptionsOf(const Preset& preset, const std::string& part,
                      const std::string& first) {
  static const std::vector<calls::Option> options = [] {
    std::vector<calls::Option> all;
    const auto add = [&all](const auto& of) {
      all.insert(all.end(), std::begin(of), std::end(of));
    };
    add(calls::RouteCall::kOptions);
    add(calls::ActivateCall::kOptions);
    add(calls::CombineCall::kOptions);
    return all;
  }();
  Preset plain;
  plain.route.needs_config = true;
  plain.activate.layout = switchyard::GateUpLayout::kConcatenated;
  std::string text;
  for (size_t i = 0; i < options.size(); ++i) {
    const switchyard::PresetOption option = OptionAt(preset, i);
    const std::string value = TextOf(option.value);
    if (option.part != part ||
        (option.name != first && value == TextOf(OptionAt(plain, i).value))) {
      continue;
    }
    const auto name_of = options[i].range.name_of;
    const auto number = static_cast<uint32_t>(option.value);
    Put(option.name, name_of == nullptr ? value : name_of(number), &text);
  }
  return text;
}

// Appends to `text` the fields of `form` that differ from their defaults.
void PutForm(const switchyard::CombineForm& form, std::string* text) {
  const switchyard::CombineForm plain;
#define PUT(field)               \
  if (form.field != plain.field) \
  Put("form." #field, std::to_string(form.field), text)
  PUT(has_residual);
  PUT(num_shared_experts);
  PUT(has_identity_experts);
  PUT(has_routed_norm);
  PUT(has_shared_norm);
  PUT(has_block_norm);
  PUT(has_vectors);
  PUT(has_expert_biases);
  PUT(has_weights_on_input);
#undef PUT
  if (form.shared_gate != plain.shared_gate) {
    Put("form.shared_gate", calls::NameOf(form.shared_gate), text);
  }
}

// Returns the fields of config.json that this family treats differently from
// most families. "x" is required, "[x]" is optional, and "-x" is ignored.
std::string FieldsOf(const Family& family) {
  const switchyard::families::Recipe most(switchyard::Score::kSoftmax);
  std::string text;
  const auto put = [&](const char* name, ConfigField field) {
    const bool needs = family.fields.needs.Has(field),
               reads = family.fields.reads.Has(field);
    if (needs == most.fields.needs.Has(field) &&
        reads == most.fields.reads.Has(field)) {
      return;
    }
    text += std::string(text.empty() ? "" : " ") +
            (needs   ? ""
             : reads ? "["
                     : "-") +
            name + (reads && !needs ? "]" : "");
  };
#define PUT(name, others) put(#name, ConfigField::name);
  SWITCHYARD_CONFIG_FIELDS(PUT)
#undef PUT
  return text;
}

// Returns the name, which is bold if moe_layer runs the family.
std::string NameOf(const Family& family) {
  const std::string bold = family.layer == nullptr ? "" : "**";
  return bold + family.preset.family + bold;
}

// Prints the fields that have several names in config.json.
void PrintNames() {
  std::printf("\n| field of config.json | other names |\n| --- | --- |\n");
  for (const char* const field : switchyard::internal::kConfigNames) {
    std::string others;
    for (const char* name = NextName(field); *name != '\0';
         name = NextName(name)) {
      others += (others.empty() ? "`" : ", `") + std::string(name) + "`";
    }
    if (!others.empty()) std::printf("| `%s` | %s |\n", field, others.c_str());
  }
}

void PrintRow(const Family& family) {
  std::string names = NameOf(family);
  for (const Family& other : kFamilies) {
    const char* const same_as = other.preset.same_as;
    if (same_as == nullptr || std::strcmp(same_as, family.preset.family) != 0) {
      continue;
    }
    names += ", " + NameOf(other);
  }
  if (family.models[0] != '\0')
    names += std::string(" (") + family.models + ")";
  const Preset& preset = family.preset;
  std::string route = OptionsOf(preset, "route", "score");
  if (preset.in_model_type) Put("in_model_type", "1", &route);
  std::string combine = OptionsOf(preset, "combine", "");
  PutForm(preset.form, &combine);
  const auto code = [](const std::string& text) {
    return text.empty() ? text : "`" + text + "`";
  };
  std::printf("| %s | %zu/%zu | %s | %s | %s | %s | %s |\n", names.c_str(),
              preset.num_experts, preset.top_k, code(route).c_str(),
              code(OptionsOf(preset, "activate", "activation")).c_str(),
              code(combine).c_str(), code(FieldsOf(family)).c_str(),
              preset.source);
}

// Prints three numbers: families, their names, and files of transformers that
// families follow. A preset with same_as is another name of a family.
void PrintCounts() {
  size_t families = 0;
  std::set<std::string> files;
  for (const Preset& preset : switchyard::Presets()) {
    families += preset.same_as == nullptr;
    const std::string source = preset.source;
    if (source.rfind("modeling_", 0) == 0) {
      files.insert(source.substr(0, source.find(':')));
    }
  }
  std::printf(
      "%zu families under %zu names; the routers of %zu families are those "
      "of transformers\n",
      families, switchyard::Presets().size, files.size());
}

}  // namespace

CLI::App* AddPresets(CLI::App& app, bool& markdown) {
  CLI::App* const presets = app.add_subcommand(
      "presets", "List the model families: experts, top_k, source");
  presets->add_flag("--markdown", markdown,
                    "Print the tables of docs/models.md, with options");
  return presets;
}

int PrintPresets(bool markdown) {
  if (markdown) {
    std::printf(
        "| preset | E/k | `route` | `activate` | `combine` and `form` | "
        "config.json | source |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n");
    for (const Family& family : kFamilies) {
      if (family.preset.same_as == nullptr) PrintRow(family);
    }
    PrintNames();
    return 0;
  }
  for (const Preset& preset : switchyard::Presets()) {
    std::printf("%-26s %4zu %3zu  %s\n", preset.family, preset.num_experts,
                preset.top_k, preset.source);
  }
  PrintCounts();
  return 0;
}

}  // namespace swy

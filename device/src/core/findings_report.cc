// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Findings as text, JSON and SARIF.

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "device/src/core/finding_kinds.h"
#include "switchyard/device/findings.h"

namespace switchyard::device {
namespace {

// Returns the length in bytes of the UTF-8 character at `at`, or 0 if the
// bytes are invalid.
size_t CharacterAt(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(at);
  const size_t length = first < 0x80   ? 1
                        : first < 0xC2 ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF5 ? 4
                                       : 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  }
  // Rejects overlong encodings, surrogates, and values above U+10FFFF.
  const unsigned second = byte(at + 1);
  const bool wrong =
      (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return wrong ? 0 : length;
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (size_t i = 0; i < text.size();) {
    const size_t length = CharacterAt(text, i);
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (length == 0) {
      quoted += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += text[i];
    } else if (c < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", unsigned{c});
      quoted += escaped;
    } else {
      quoted.append(text, i, length);
    }
    i += std::max<size_t>(length, 1);
  }
  return quoted + '"';
}

std::string Member(const char* name, const std::string& json) {
  return Quoted(name) + ": " + json;
}
std::string Member(const char* name, size_t number) {
  return Member(name, std::to_string(number));
}

std::string PlaceToJson(const Place& place) {
  if (!place.known()) return "null";
  return "{" + Member("file", Quoted(place.file)) + ", " +
         Member("line", place.line) + ", " + Member("column", place.column) +
         "}";
}

// Escapes all characters that RFC 3986 does not allow in a path.
std::string Uri(std::string path, const std::string& source_root) {
  if (!source_root.empty() &&
      path.compare(0, source_root.size(), source_root) == 0) {
    const size_t rest = path.find_first_not_of('/', source_root.size());
    const bool whole =
        source_root.back() == '/' ||
        (path.size() > source_root.size() && path[source_root.size()] == '/');
    if (whole && rest != std::string::npos) path.erase(0, rest);
  }
  std::string uri = path[0] == '/' ? "file://" : "";
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       (c >= '0' && c <= '9') ||
                       std::string("/-._~").find(c) != std::string::npos;
    if (plain) {
      uri += c;
    } else {
      char escaped[4];
      std::snprintf(escaped, sizeof(escaped), "%%%02X",
                    unsigned{static_cast<unsigned char>(c)});
      uri += escaped;
    }
  }
  return uri;
}

std::string PhysicalLocation(const Place& place,
                             const std::string& source_root) {
  std::string region = Member("startLine", place.line);
  if (place.column != 0) region += ", " + Member("startColumn", place.column);
  return Member(
      "physicalLocation",
      "{" +
          Member(
              "artifactLocation",
              "{" + Member("uri", Quoted(Uri(place.file, source_root))) + "}") +
          ", " + Member("region", "{" + region + "}") + "}");
}

constexpr const char* kDescriptions[] = {
    "An access outside the bound or declared memory",
    "A read of memory that nothing has written",
    "Threadgroups of one dispatch race",
    "Threads of a threadgroup race: no barrier is between them",
    "Threads of a threadgroup race: the barrier is for other memory",
    "Dispatches of a concurrent encoder race: memoryBarrier is missing",
    "A race of writes that write the same value",
    "A barrier that not all threads reach",
    "A simd function that reads a lane that does not exist",
    "An operation that a kernel must not do",
    "An access to a misaligned address",
    "A read before the offset at which a buffer is bound",
    "A division of an integer by zero, or one that overflows",
};
static_assert(std::size(kDescriptions) ==
              static_cast<size_t>(kLastFindingKind) + 1);

std::string Rules() {
  std::string rules;
  for (uint32_t k = 0; k <= static_cast<uint32_t>(kLastFindingKind); ++k) {
    rules += std::string(k == 0 ? "" : ",") + "\n        {" +
             Member("id", Quoted(NameOf(static_cast<FindingKind>(k)))) + ", " +
             Member("shortDescription",
                    "{" + Member("text", Quoted(kDescriptions[k])) + "}") +
             "}";
  }
  return rules;
}

std::string Result(const Finding& finding, const std::string& source_root) {
  const std::string message =
      finding.text + (finding.help.empty() ? "" : ". Help: " + finding.help);
  std::string json =
      "{" + Member("ruleId", Quoted(NameOf(finding.kind))) + ", " +
      Member("ruleIndex", static_cast<size_t>(finding.kind)) + ", " +
      Member("level", finding.kind == FindingKind::kSameValue ? "\"warning\""
                      : finding.kind == FindingKind::kBeforeOffset
                          ? "\"note\""
                          : "\"error\"") +
      ", " + Member("message", "{" + Member("text", Quoted(message)) + "}");
  std::string location = Member(
      "logicalLocations", "[{" + Member("name", Quoted(finding.kernel)) + ", " +
                              Member("kind", "\"function\"") + "}]");
  if (finding.where.known()) {
    location = PhysicalLocation(finding.where, source_root) + ", " + location;
  }
  json += ", " + Member("locations", "[{" + location + "}]");
  if (finding.other.known()) {
    json +=
        ", " +
        Member("relatedLocations",
               "[{" + Member("id", 1) + ", " +
                   PhysicalLocation(finding.other, source_root) + ", " +
                   Member("message",
                          "{" + Member("text", "\"the access before\"") + "}") +
                   "}]");
  }
  return json + "}";
}

}  // namespace

std::string FindingsToText(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += finding.text + "\n";
    if (!finding.help.empty()) text += "    help: " + finding.help + "\n";
  }
  return text;
}

std::string FindingsToJson(const std::vector<Finding>& findings) {
  std::string json;
  for (const Finding& f : findings) {
    const Size& p = f.threadgroup;
    json += (json.empty() ? "\n  {" : ",\n  {") +
            Member("kind", Quoted(NameOf(f.kind))) + ", " +
            Member("kernel", Quoted(f.kernel)) + ", " +
            Member("dispatch", f.dispatch) + ", " +
            Member("threadgroup", "[" + std::to_string(p.width) + ", " +
                                      std::to_string(p.height) + ", " +
                                      std::to_string(p.depth) + "]") +
            ", " +
            Member("thread", f.thread == Finding::kNoThread
                                 ? "null"
                                 : std::to_string(f.thread)) +
            ", " + Member("text", Quoted(f.text)) + ", " +
            Member("where", PlaceToJson(f.where)) + ", " +
            Member("other", PlaceToJson(f.other)) + ", " +
            Member("help", Quoted(f.help)) + "}";
  }
  return "{" + Member("findings", "[" + json + (json.empty() ? "]" : "\n]")) +
         "}\n";
}

std::string FindingsToSarif(const std::vector<Finding>& findings,
                            const std::string& source_root) {
  std::string results;
  for (const Finding& finding : findings) {
    results += (results.empty() ? "\n      " : ",\n      ") +
               Result(finding, source_root);
  }
  const std::string driver = "{" + Member("name", "\"Switchyard\"") + ", " +
                             Member("rules", "[" + Rules() + "\n      ]") + "}";
  const std::string run =
      Member("tool", "{" + Member("driver", driver) + "}") + ",\n    " +
      Member("columnKind", "\"utf16CodeUnits\"") + ",\n    " +
      Member("results", "[" + results + (results.empty() ? "]" : "\n    ]"));
  return "{" +
         Member("$schema",
                "\"https://json.schemastore.org/sarif-2.1.0.json\"") +
         ",\n  " + Member("version", "\"2.1.0\"") + ",\n  " +
         Member("runs", "[{\n    " + run + "\n  }]") + "\n}\n";
}

}  // namespace switchyard::device

# Converts the headers' plain comments to Doxygen's form: a `//` above a declaration
# becomes `///`, and a `//` behind a declaration becomes `///<`. Formulas, which are
# indented, keep their layout. Each public function gets its example. The text of a
# link to a Markdown file is the title of the page. Awk must load titles.awk first.

# Escapes Doxygen's commands and markup, except in code and in quotes, where Doxygen reads no
# markup. Code and quotes may continue in the next line of a comment, so `enclosed_by` keeps
# the backtick or quote that is still open.
function escaped(text,   i, mark, out, part) {
  gsub(/ *NOLINT(\([^)]*\))?/, "", text)
  # The comments' lists use asterisks. So a line that begins with `-`, `+` or a number continues
  # a sentence, and must not become a list.
  if (match(text, /^ ([-+]|[0-9]+\.) /)) text = substr(text, 1, RLENGTH - 1) "&nbsp;" substr(text, RLENGTH + 1)
  if (text ~ /^ *$/) enclosed_by = ""
  for (i = 1; i <= length(text); ++i) {
    mark = substr(text, i, 1)
    if (mark !~ /[`"]/ || (enclosed_by != "" && mark != enclosed_by)) {
      part = part mark
      continue
    }
    out = out (enclosed_by == "" ? with_titles(escaped_text(part)) : part) mark
    part = ""
    enclosed_by = enclosed_by == "" ? mark : ""
  }
  return out (enclosed_by == "" ? with_titles(escaped_text(part)) : part)
}
function with_titles(text,   out, path) {
  while (match(text, /(docs|device\/docs|bindings|integrations)\/[a-z\/]*\.md/)) {
    path = substr(text, RSTART, RLENGTH)
    out = out substr(text, 1, RSTART - 1)
    text = substr(text, RSTART + RLENGTH)
    out = out (page_of(path) == "" ? path : "\\ref " page_of(path) " \"" title_of(path, "") "\"")
  }
  return out text
}
function escaped_text(text) {
  gsub(/[@\\#]/, "\\\\&", text)
  gsub(/</, "\\&lt;", text)
  gsub(/>/, "\\&gt;", text)
  gsub(/\*/, "\\*", text)
  gsub(/_/, "\\_", text)
  gsub(/&gt;::/, "\\&gt;\\::", text)
  # Doxygen ends the brief text at a full stop before a blank, but two full stops in a row
  # must not end it.
  gsub(/\.\. /, "..\\&nbsp;", text)
  return text
}
# Begins a header's page with the comment about the file. Without this page, Doxygen would put
# all declarations on the namespace's page, or on none.
function begin_page(   group, path) {
  path = FILENAME
  if (index(path, ENVIRON["PWD"] "/") == 1) path = substr(path, length(ENVIRON["PWD"]) + 2)
  group = group_of(path)
  sub(/.*include\/switchyard\//, "", path)
  print "/// \\addtogroup " group " " path "\n" about "/// \\{\n"
}
FNR == 1 { is_header = 1; column = 0 }
# Drops the licence, and marks the comment below it as the comment about the file.
is_header && /^\/\/ (Copyright|SPDX)/ { next }
is_header && /^\/\// && !is_file { print "/// \\file"; is_file = 1 }
/^#ifndef/ { is_header = 0 }
/^ *\/\// {
  at = index($0, "//")
  text = substr($0, at + 2)
  indent = substr($0, 1, at - 1)
  if (column != 0 && at == column) {
    print indent "///<" escaped(text)
    next
  }
  column = 0
  # Text has one blank behind the slashes, a formula has more.
  is_formula = text ~ /^  /
  if (is_formula != was_formula) {
    print indent "///"
    if (is_header) about = about "///\n"
  }
  was_formula = is_formula
  text = (is_formula ? "    " text : escaped(text))
  print indent "///" text
  above = above indent "///" text "\n"
  if (is_header) about = about "///" text "\n"
  next
}
/^(namespace switchyard(::device)?|extern "C") \{$/ {
  print
  begin_page()
  next
}
/^\}  \/\/ (namespace switchyard(::device)?|extern "C")$/ { print "/// \\}"; print; next }
# Removes the comment behind a brace or a forward declaration of a class, because the comment
# only names a namespace or a file.
/^(\}|class [A-Za-z]+;|namespace .*\{).*\/\// { sub(/ *\/\/.*/, "") }
# Declares each field of a line with several fields on its own, with the same comment, because
# Doxygen gives the comment to the line's first field only.
match($0, /^  [A-Za-z_0-9<>]+ [a-z_]+( = [^,;(]+)?(, [a-z_]+( = [^,;(]+)?)+;/) {
  declared = substr($0, 1, RLENGTH)
  behind = substr($0, RLENGTH + 1)
  sub(/^ *\/\/ /, "///< ", behind)
  match(declared, /^  [^ ]+ /)
  type = substr(declared, 1, RLENGTH)
  count = split(substr(declared, RLENGTH + 1), fields, /[,;] */)
  for (i = 1; i < count; ++i) print (i == 1 ? "" : above) type fields[i] "; " behind
  above = ""
  next
}
# Adds the field's name to the comment of each field of a config.json. Otherwise the comment would
# be empty, or have only the field's other names and the families that use the field.
/^struct ModelConfig|^typedef struct swy_model_config/ { is_config = 1 }
/^}/ { is_config = 0 }
is_config && match($0, /[a-z_]+;/) && !/uint32_t size;/ {
  field = "`" substr($0, RSTART, RLENGTH - 1) "` of a config.json"
  at = index($0, " // ")
  $0 = at == 0 ? $0 "  // " field : substr($0, 1, at) "// " field ": " substr($0, at + 4)
}
# Adds comments to the field `size` and to the macros of each struct of the C ABI.
/^  uint32_t size;$/ { $0 = $0 "  // size of the struct, which its ..._INIT macro sets" }
/^#define SWY_[A-Z0-9_]+_INIT/ { print "/// Initialises the struct with its size and defaults." }
/^#define SWY_NO_[A-Z_]+ \\$/ { print "/// The value of a field that is left out." }
{
  was_formula = 0
  enclosed_by = above = ""
  if (match($0, /^(inline )?(Status|const Preset|std::unique_ptr<Executor>) [A-Z][A-Za-z]+\(/)) {
    name = substr($0, 1, RLENGTH - 1)
    sub(/.* /, "", name)
    if (!(name in shown)) print "///\n/// \\snippet examples.cc " name
    shown[name] = 1
  }
  sub(/ *\/\/ NOLINT(\([^)]*\))?$/, "")
  at = index($0, " // ")
  column = 0
  if (at != 0) {
    column = at + 1
    print substr($0, 1, at) "///<" escaped(substr($0, at + 3))
    next
  }
  print
}

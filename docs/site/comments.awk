# Doxygen's form of the headers' plain comments: `//` above a declaration becomes
# `///`, and one behind it `///<`. Formulas, which are indented, stay as they
# are laid out, and each public function gets its example.

# Doxygen reads these as commands or as markup.
function escaped(text) {
  gsub(/[@\\#]/, "\\\\&", text)
  gsub(/</, "\\&lt;", text)
  gsub(/>/, "\\&gt;", text)
  gsub(/\*/, "\\*", text)
  gsub(/_/, "\\_", text)
  gsub(/&gt;::/, "\\&gt;\\::", text)
  return text
}
# A page for each header, with the comment about the file: else everything would be on
# that of the namespace, or of nothing.
function begin_page(   group, path) {
  path = FILENAME
  sub(/.*include\/switchyard\//, "", path)
  group = path
  gsub(/[^a-z_]/, "_", group)
  print "/// \\addtogroup " group " " path "\n" about "/// \\{\n"
}
FNR == 1 { is_header = 1; column = 0 }
# The licence, and the comment about the file below it.
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
  # Text begins one blank behind the slashes, a formula later.
  is_formula = text ~ /^  /
  if (is_formula != was_formula) {
    print indent "///"
    if (is_header) about = about "///\n"
  }
  was_formula = is_formula
  text = (is_formula ? "    " text : escaped(text))
  print indent "///" text
  if (is_header) about = about "///" text "\n"
  next
}
/^(namespace switchyard(::device)?|extern "C") \{$/ {
  print
  begin_page()
  next
}
/^\}  \/\/ (namespace switchyard(::device)?|extern "C")$/ { print "/// \\}"; print; next }
{
  was_formula = 0
  if (match($0, /^(inline )?(Status|const Preset|std::unique_ptr<Executor>) [A-Z][A-Za-z]+\(/)) {
    name = substr($0, 1, RLENGTH - 1)
    sub(/.* /, "", name)
    if (!(name in shown)) print "///\n/// \\snippet examples.cc " name
    shown[name] = 1
  }
  at = index($0, " // ")
  column = 0
  if (at != 0) {
    column = at + 1
    print substr($0, 1, at) "///<" escaped(substr($0, at + 3))
    next
  }
  print
}

# Converts the Markdown pages to Doxygen's form: headings get the anchors that links name,
# unique over all pages, and links to files outside of the site become text. If the text of
# a link is a page's file name, the page's title replaces it. Awk must load titles.awk first.

# Returns the path from the root for a path relative to `folder`, the folder of this page.
function from_root(path) {
  sub(/#.*/, "", path)
  path = folder path
  while (sub(/[^\/]+\/\.\.\//, "", path)) {}
  return path
}
# True if a link's text is only the name of the file or folder that it links to.
function is_file_name(text, path) {
  sub(/^(\.\.\/)+/, "", text)
  if (path !~ "(^|/)" text "$") sub(/(\/README)?\.md$/, "", path)
  return length(text) > 0 && path ~ "(^|/)" text "$"
}
function with_links(line,   out, before, text, target, anchor, path, to, title) {
  out = ""
  while (match(line, /!?\[[^\]]*\]\([^)]*\)/)) {
    before = substr(line, 1, RSTART - 1)
    text = target = substr(line, RSTART, RLENGTH)
    line = substr(line, RSTART + RLENGTH)
    out = out before
    sub(/\]\(.*/, "", text)
    sub(/^!?\[[^\]]*\]\(/, "", target)
    sub(/\)$/, "", target)
    if (text ~ /^!/) {
      sub(/.*\//, "", target)
      out = out text "](" target ")"
      continue
    }
    text = substr(text, 2)
    # Removes backticks, which Doxygen would show in a link.
    gsub(/`/, "", text)
    if (target ~ /^http/) {
      out = out "[" text "](" target ")"
      continue
    }
    path = target ~ /^#/ ? file : from_root(target)
    to = page_of(path)
    anchor = target ~ /#/ ? target : ""
    sub(/^[^#]*#/, "", anchor)
    if (to != "") {
      title = title_of(path, anchor)
      if (is_file_name(text, path) && title != "") text = title
      out = out "[" text "](#" to (anchor == "" || anchor == to ? "" : "-" anchor) ")"
    } else if ((to = group_of(path)) != "") out = out "@ref " to " \"" text "\""
    else out = out text
  }
  return out line
}
# Turns the file name of a page into a link. Doubles the backticks around code with an
# apostrophe, which would end a code span with single backticks in Doxygen.
function with_code(line,   out, code, path) {
  while (match(line, /`[^`]*`/)) {
    out = out substr(line, 1, RSTART - 1)
    code = path = substr(line, RSTART, RLENGTH)
    line = substr(line, RSTART + RLENGTH)
    gsub(/`/, "", path)
    if (path ~ /\/.*\.md$/ && page_of(path) != "") code = "[" title_of(path, "") "](#" page_of(path) ")"
    else if (index(code, "'")) code = "`" code "`"
    out = out code
  }
  return out line
}
FNR == 1 {
  folder = FILENAME
  if (index(folder, ENVIRON["PWD"] "/") == 1) folder = substr(folder, length(ENVIRON["PWD"]) + 2)
  file = folder
  page = page_of(folder)
  sub(/[^\/]*$/, "", folder)
  while ((getline line < FILENAME) > 0) if (line ~ /design\.svg/) has_picture = 1
  close(FILENAME)
}
# Hides the text for releases with a public address: see scripts/release/address.py.
/^<!-- address: set$/ { is_hidden = 1 }
is_hidden || /^<!-- address: none -->$/ { if (/^-->$/) is_hidden = 0; next }
/^```/ { is_code = !is_code }
!is_code && /^#+ / {
  heading = $0
  sub(/^#+ /, "", heading)
  # If README has no picture of the design, the front page shows it above its first section.
  if (page == "index" && FNR != 1 && !has_picture++) print "![The way of a call, from an engine to an instruction set](design.svg)\n"
  # The front page has a label of its own.
  if (FNR == 1 && page == "index") print
  else print $0 " {#" page (FNR == 1 ? "" : "-" slug_of(heading)) "}"
  next
}
is_code || /^    / { print; next }
{ print with_code(with_links($0)) }

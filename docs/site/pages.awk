# Doxygen's form of the Markdown pages: headings get the anchors that links name,
# unique over all pages, and links to files outside of the site become text.

# The page of a file, a path from the root; "" if the site has none.
function page_of(path) {
  if (path == "README.md") return "index"
  if (path ~ /^(bindings\/(python|rust)|integrations\/ggml|device)\/README\.md$/) sub(/\/README/, "", path)
  else if (path !~ /^(docs\/[a-z]+|device\/docs\/metal)\.md$/) return ""
  gsub(/.*\/|\.md$/, "", path)
  return path
}
# A link's path from the root, by the file that has it.
function from_root(path) {
  sub(/#.*/, "", path)
  path = folder path
  while (sub(/[^\/]+\/\.\.\//, "", path)) {}
  return path
}
function slug_of(heading) {
  heading = tolower(heading)
  gsub(/[^a-z0-9_ -]/, "", heading)
  gsub(/ /, "-", heading)
  return heading
}
function with_links(line,   out, text, target, anchor, to) {
  out = ""
  while (match(line, /\[[^\]]*\]\([^)]*\)/)) {
    out = out substr(line, 1, RSTART - 1)
    text = target = substr(line, RSTART, RLENGTH)
    line = substr(line, RSTART + RLENGTH)
    sub(/\]\(.*/, "", text)
    text = substr(text, 2)
    sub(/^\[[^\]]*\]\(/, "", target)
    sub(/\)$/, "", target)
    if (target ~ /^http/) {
      out = out "[" text "](" target ")"
      continue
    }
    to = target ~ /^#/ ? page : page_of(from_root(target))
    anchor = target ~ /#/ ? target : ""
    sub(/^[^#]*#/, "", anchor)
    if (to == "") out = out text
    else out = out "[" text "](#" to (anchor == "" || anchor == to ? "" : "-" anchor) ")"
  }
  return out line
}
FNR == 1 {
  folder = FILENAME
  if (index(folder, ENVIRON["PWD"] "/") == 1) folder = substr(folder, length(ENVIRON["PWD"]) + 2)
  page = page_of(folder)
  sub(/[^\/]*$/, "", folder)
}
/^```/ { is_code = !is_code }
!is_code && /^#+ / {
  heading = $0
  sub(/^#+ /, "", heading)
  # The front page has a label of its own.
  if (FNR == 1 && page == "index") print
  else print $0 " {#" page (FNR == 1 ? "" : "-" slug_of(heading)) "}"
  next
}
is_code || /^    / { print; next }
{ print with_links($0) }

# Doxygen's form of the Markdown pages: headings get the anchors that links name,
# unique over all pages, and links to files outside of the site become text.

# The page of a path, by the folder for a README; "" if the site has none.
function page_of(path) {
  sub(/#.*/, "", path)
  if (path !~ /\.md$/) return ""
  if (path ~ /(^|\/)README\.md$/) {
    sub(/\/?README\.md$/, "", path)
    sub(/.*\//, "", path)
    return path == "" || path == ".." ? "index" : path
  }
  sub(/.*\//, "", path)
  sub(/\.md$/, "", path)
  return path ~ /^(conformance|engines|linking|metal|models|reliability|speed)$/ ? path : ""
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
    to = target ~ /^#/ ? page : page_of(target)
    anchor = target ~ /#/ ? target : ""
    sub(/^[^#]*#/, "", anchor)
    if (to == "") out = out text
    else out = out "[" text "](#" to (anchor == "" || anchor == to ? "" : "-" anchor) ")"
  }
  return out line
}
FNR == 1 { page = page_of(FILENAME) }
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

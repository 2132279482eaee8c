# Functions that comments.awk and pages.awk share: the pages of the site and their titles.

# Returns the page of the file with this path from the root, or "" if the site has no such page.
function page_of(path) {
  if (path == "README.md") return "index"
  if (path == "conformance/README.md") return "vectors"
  if (path ~ /^(bindings\/(python|rust)|integrations\/ggml|device)\/README\.md$/) sub(/\/README/, "", path)
  else if (path !~ /^(docs\/[a-z]+|device\/docs\/metal)\.md$/) return ""
  gsub(/.*\/|\.md$/, "", path)
  return path
}
# Returns the page of the header with this path from the root, or "" if there is no such header.
function group_of(path) {
  if (path == "include/switchyard/switchyard.h") return "switchyard.h"
  if (!sub(/^(device\/)?include\/switchyard\//, "", path) || path !~ /\.h$/) return ""
  gsub(/[^a-z_]/, "_", path)
  return path
}
function slug_of(heading) {
  heading = tolower(heading)
  gsub(/[^a-z0-9_ -]/, "", heading)
  gsub(/ /, "-", heading)
  return heading
}
# Returns the title of a Markdown file, or of its section `anchor` if one is given. Returns "" if
# there is no such title.
function title_of(path, anchor,   line, is_code, heading, key) {
  key = path "#" anchor
  if (key in titles) return titles[key]
  while ((getline line < path) > 0) {
    if (line ~ /^```/) is_code = !is_code
    if (is_code || line !~ /^#+ /) continue
    heading = line
    sub(/^#+ /, "", heading)
    if (anchor == "" || slug_of(heading) == anchor) break
    heading = ""
  }
  close(path)
  gsub(/`/, "", heading)
  return titles[key] = heading
}

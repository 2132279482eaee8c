# Writes the code blocks of a Markdown page as files to the folder `to`. The
# line before a block names its file: "`layer.cc`:". A block of text is the
# output of the program before it, and becomes layer.cc.out.
function fail(why) {
  print FILENAME ":" FNR ": " why > "/dev/stderr"
  exit 2
}
/^```/ && path != "" {
  close(path)
  path = ""
  next
}
path != "" {
  print > path
  next
}
/^```text$/ {
  if (name == "") fail("output without a program before it")
  path = to "/" name ".out"
  next
}
/^```/ {
  if (last !~ /^`[A-Za-z0-9_.]+`:$/) fail("no file name in the line before the block")
  name = substr(last, 2, length(last) - 3)
  path = to "/" name
}
/./ { last = $0 }

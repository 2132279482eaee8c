# Counts comment blocks that begin with a word with which no sentence begins: a
# fragment says what something is to whoever has just written it. A block is a
# run of lines of // alone, or a comment at a line's end.
FNR == 1 { is_inside = 0 }
{
  at = match($0, /\/\/ /)
  is_alone = $0 ~ /^ *\/\/( |$)/
  if (!at) { if (!is_alone) is_inside = 0; next }
  if (is_alone && is_inside) next
  is_inside = 1
  ++blocks
  text = substr($0, at + 3)
  if (text ~ /^(What|Of|Whose|Where|As|By|With|Without|That|Those|Or|And) /) {
    ++fragments
    print FILENAME ":" FNR ": " text
  }
}
END {
  printf "%d of %d comment blocks are fragments\n", fragments, blocks
  exit 50 * fragments > blocks
}

# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0

# awk -f structs.awk HEADER...: the structs, enumerations and functions of
# switchyard.h as S(struct, whether it has defaults, its initialiser, F(field)
# ...), E(enumeration, N(enumerator) ...) and P(function). The macro that initialises swy_x is
# SWY_X_INIT or SWY_NO_X.
{ sub(/\/\/.*/, "") }
/^typedef struct swy_[A-Za-z0-9_]+ \{|^enum swy_[A-Za-z0-9_]+ \{/ {
  is_struct = /^typedef/
  name = is_struct ? $3 : $2
  text = ""
  sub(/^[^{]*/, "")
}
name != "" { text = text $0 }
name != "" && /\}/ {
  gsub(/[{}]/, "", text)
  if (is_struct) sub(/[^;]*;$/, "", text)  # the name behind it
  names = ""
  count = split(text, parts, is_struct ? ";" : ",")
  for (i = 1; i <= count; ++i) {
    if (is_struct && match(parts[i], /\(\*[A-Za-z0-9_]+/)) {
      names = names " F(" substr(parts[i], RSTART + 2, RLENGTH - 2) ")"
      continue
    }
    fields = split(parts[i], words, ",")
    for (j = 1; j <= fields; ++j) {
      sub(/ *[=[].*/, "", words[j])
      if (match(words[j], /[A-Za-z0-9_]+ *$/)) {
        names = names (is_struct ? " F(" : " N(") substr(words[j], RSTART) ")"
      }
    }
  }
  if (is_struct) fields_of[order[++structs] = name] = names
  else print "E(" name "," names ")"
  name = ""
}
/^SWY_API / && match($0, /swy_[a-z0-9_]+\(/) {
  print "P(" substr($0, RSTART, RLENGTH - 1) ")"
}
/^#define SWY_(NO_[A-Za-z0-9_]+|[A-Za-z0-9_]+_INIT) / {
  of = $2
  sub(/^SWY_NO_|^SWY_/, "", of)
  sub(/_INIT$/, "", of)
  macro_of["swy_" tolower(of)] = $2
}
END {
  macro_of["swy_work_tile"] = macro_of["swy_row_format"] = "{}"
  for (i = 1; i <= structs; ++i) {
    of = order[i]
    # Callers fill the fields of these, whatever the macro says.
    is_filled = of ~ /^swy_(matrix|rows|executor)$/
    print "S(" of ", " (of in macro_of && !is_filled) ", " \
      (of in macro_of ? macro_of[of] : "{}") "," fields_of[of] ")"
  }
}

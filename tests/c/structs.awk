# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0

# awk -f structs.awk HEADER...: prints the structs, enumerations and functions of
# switchyard.h as
#   S(struct, 1 if it has defaults, its initialiser, F(field) ...)
#   E(enumeration, N(enumerator) ...)
#   P(function)
#   CALL(function, "its name in C++", who, 1 if it has a report, x, X, y, Y, z, Z)
# CALL is also printed for a function that has inputs, outputs and options. `who` is
# EXECUTOR if the function has an executor, too, and NOBODY if not. x and X stand for
# the inputs swy_x and SWY_X_INIT, y and z for the outputs and options. The macro that
# initialises a struct swy_x is SWY_X_INIT or SWY_NO_X.
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
  if (is_struct) sub(/[^;]*;$/, "", text)  # the name after it
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
  function_name = substr($0, RSTART, RLENGTH - 1)
  print "P(" function_name ")"
  declaration = ""
  is_declared = 1
}
is_declared { declaration = declaration $0 }
is_declared && /\)/ {
  is_declared = 0
  sub(/^[^(]*\(/, "", declaration)
  count = split(declaration, words, /[^A-Za-z0-9_*]+/)
  pointers = ""
  for (i = 1; i <= count; ++i) if (words[i] ~ /^swy_.*\*$/) pointers = pointers words[i]
  commas = gsub(/,/, ",", declaration)
  count = split(pointers, words, "*") - 1
  if (count == commas + 1 && count <= 4 && words[1] ~ /_inputs$/ && words[3] ~ /_options$/) {
    calls[++num_calls] = function_name
    of_call[num_calls] = words[1] " " words[2] " " words[3] " " (count == 3 ? "" : words[4])
  }
}
/^#define SWY_(NO_[A-Za-z0-9_]+|[A-Za-z0-9_]+_INIT) / {
  of = $2
  sub(/^SWY_NO_|^SWY_/, "", of)
  sub(/_INIT$/, "", of)
  macro_of["swy_" tolower(of)] = $2
}
END {
  macro_of["swy_row_format"] = "{}"
  for (i = 1; i <= structs; ++i) {
    of = order[i]
    # Callers fill the fields of these structs, even if the macro has defaults.
    is_filled = of ~ /^swy_(matrix|rows|executor)$/
    print "S(" of ", " (of in macro_of && !is_filled) ", " \
      (of in macro_of ? macro_of[of] : "{}") "," fields_of[of] ")"
  }
  for (i = 1; i <= num_calls; ++i) {
    count = split(of_call[i], words, " ")
    who = count == 3 ? "NOBODY" : "EXECUTOR"
    split(calls[i], parts, "_")
    text = ""
    for (j = 2; j in parts; ++j) {
      text = text toupper(substr(parts[j], 1, 1)) substr(parts[j], 2)
    }
    line = "CALL(" calls[i] ", \"" text "\", " who ", " (fields_of[words[2]] ~ /F\(report\)/)
    for (j = 1; j <= 3; ++j) {
      name = substr(words[j], 5)
      line = line ", " name ", " toupper(name)
    }
    print line ")"
  }
}

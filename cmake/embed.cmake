# Writes OUTPUT, C++ that defines VARIABLE (in its namespace, declared in HEADER):
# the texts of FILES, by their names, which have simd/ in them where that is the folder.
set(code "#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\nconst EmbeddedFile ${VARIABLE}[] = {\n")
foreach(file IN LISTS FILES)
  string(REGEX MATCH "(simd/)?[^/]+$" name ${file})
  file(READ ${file} text)
  string(APPEND code "    {\"${name}\", R\"embedded(${text})embedded\"},\n")
endforeach()
string(APPEND code "    {nullptr, nullptr},\n};\n\n}  // namespace ${NAMESPACE}\n")
file(WRITE ${OUTPUT} "${code}")

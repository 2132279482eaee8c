# Writes OUTPUT, C++ that defines VARIABLE (in its namespace, declared in HEADER):
# the texts of FILES, by their names.
set(code "#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\nconst EmbeddedFile ${VARIABLE}[] = {\n")
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  file(READ ${file} text)
  string(APPEND code "    {\"${name}\", R\"embedded(${text})embedded\"},\n")
endforeach()
string(APPEND code "    {nullptr, nullptr},\n};\n\n}  // namespace ${NAMESPACE}\n")
file(WRITE ${OUTPUT} "${code}")

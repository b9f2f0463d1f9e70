# The page of `report` and `watch` becomes part of the program: no file to look for when it runs.
set(page ${CMAKE_SOURCE_DIR}/src/inspect/page)
function(fathom_page_file name)
  list(TRANSFORM ARGN PREPEND ${page}/)
  set(made ${CMAKE_BINARY_DIR}/page/${name}.c)
  string(REPLACE ";" "|" files "${ARGN}")
  add_custom_command(OUTPUT ${made}
    COMMAND ${CMAKE_COMMAND} -D NAME=${name} -D OUTPUT=${made} -D "FILES=${files}"
      -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${ARGN} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
  target_sources(fth_inspect PRIVATE ${made})
endfunction()
fathom_page_file(fth_page_frame report.html)
fathom_page_file(fth_page_style report.css)
fathom_page_file(fth_page_script base.js chart.js heat.js report.js)

# Turns files into a C source with their bytes, size and SHA-256:
#   cmake -D NAME=fth_page_style -D OUTPUT=style.c -D "FILES=a.css|b.css" -P embed.cmake
# Several files become one, in the order given.
string(REPLACE "|" ";" FILES "${FILES}")
set(hex "")
foreach(file ${FILES})
  file(READ ${file} part HEX)
  string(APPEND hex "${part}")
endforeach()
string(LENGTH "${hex}" size)
math(EXPR size "${size} / 2")

# The sum is taken of a file, since text with brackets or semicolons is no safe CMake string.
set(whole ${OUTPUT}.whole)
execute_process(COMMAND ${CMAKE_COMMAND} -E cat ${FILES} OUTPUT_FILE ${whole})
file(SHA256 ${whole} sum)
file(SIZE ${whole} whole_size)
if(size EQUAL 0 OR NOT whole_size EQUAL size)
  message(FATAL_ERROR "${OUTPUT}: ${whole_size} bytes, not ${size}")
endif()
file(REMOVE ${whole})

string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "/* Made by cmake/embed.cmake. */
#include <stddef.h>

extern const unsigned char ${NAME}[];
extern const size_t ${NAME}_size;
extern const char ${NAME}_sha256[];
const unsigned char ${NAME}[] = {
${bytes}};
const size_t ${NAME}_size = ${size};
const char ${NAME}_sha256[] = \"${sum}\";
")

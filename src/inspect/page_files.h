/* page_files.h: the files of src/inspect/page, as the build puts them into the program
 * (cmake/embed.cmake). The sums are SHA-256, in hexadecimal. */
#ifndef FTH_INSPECT_PAGE_FILES_H
#define FTH_INSPECT_PAGE_FILES_H

#include <stddef.h>

extern const unsigned char fth_page_frame[], fth_page_style[], fth_page_script[];
extern const size_t fth_page_frame_size, fth_page_style_size, fth_page_script_size;
extern const char fth_page_frame_sha256[], fth_page_style_sha256[], fth_page_script_sha256[];

#endif

/* image_list.h: the pictures of a split, one after the other: a list of files with labels or label
 * maps, or a file of CIFAR. */
#ifndef FTH_DATA_IMAGE_LIST_H
#define FTH_DATA_IMAGE_LIST_H

#include "base/error.h"
#include "text/lines.h"
#include "image/image.h"

typedef struct fth_image_list fth_image_list;

/* path: lines of file<TAB>label, files beside the list unless their names begin with a slash; or
 * "*.bin", records of CIFAR. */
fth_err fth_image_list_open(const char *path, fth_image_list **out);
void fth_image_list_free(fth_image_list *l);

/* The next picture and its label, valid until the next call; *label NULL after the last. read:
 * false: the label alone is wanted. Errors name the list and the line, or the file. */
fth_err fth_image_list_next(fth_image_list *l, int read, const fth_image **image,
                            const char **label);

/* The label of the newest picture as the name of a map beside the list: a class of every pixel,
 * read as numbers (image.h), of the picture's size. Valid until the next call. Errors as above. */
fth_err fth_image_list_map(fth_image_list *l, const fth_image **map);

/* Pictures given so far, and where the newest one stands, for messages. */
int64_t fth_image_list_count(const fth_image_list *l);
const char *fth_image_list_place(const fth_image_list *l);

#endif

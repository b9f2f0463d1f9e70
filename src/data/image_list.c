/* image_list.c: reads pictures and labels from a list of files or a file of CIFAR. */
#include "data/image_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

struct fth_image_list {
    fth_text_file file;
    fth_lines *lines; /* a list; NULL: CIFAR */
    fth_cifar cifar;
    fth_image image; /* the newest of a list */
    fth_image view;  /* the newest of CIFAR, borrowed */
    fth_image map;   /* of the newest */
    char *line, *path;
    char label[16]; /* of CIFAR */
    char place[600];
    int64_t count;
};

static int ends_with(const char *path, const char *end) {
    const size_t n = strlen(path), k = strlen(end);
    return n >= k && strcmp(path + n - k, end) == 0;
}

fth_err fth_image_list_open(const char *path, fth_image_list **out) {
    fth_image_list *l = calloc(1, sizeof *l);
    if (!l) return fth_fail(FTH_NO_MEMORY, "%s: no memory to read it", path);
    l->file = (fth_text_file){path, path};
    fth_err err = ends_with(path, ".bin") ? fth_cifar_open(path, &l->cifar)
                                          : fth_lines_new(&l->file, 1, &l->lines);
    if (err)
        fth_image_list_free(l);
    else
        *out = l;
    return err;
}

void fth_image_list_free(fth_image_list *l) {
    if (!l) return;
    fth_lines_free(l->lines);
    fth_cifar_fini(&l->cifar);
    fth_image_fini(&l->image);
    fth_image_fini(&l->map);
    free(l->line);
    free(l->path);
    free(l);
}

static fth_err next_line(fth_image_list *l, const char **label) {
    const char *text;
    size_t length;
    FTH_TRY(fth_lines_next(l->lines, &text, &length));
    if (!text) return FTH_OK;
    snprintf(l->place, sizeof l->place, "%.500s:%lld", l->file.name,
             (long long)fth_lines_number(l->lines));
    free(l->line);
    l->line = strdup(text);
    char *tab = l->line ? strchr(l->line, '\t') : NULL;
    if (!l->line) return fth_fail(FTH_NO_MEMORY, "%s: no memory to read it", l->file.name);
    if (!tab || tab == l->line || !tab[1] || strchr(tab + 1, '\t'))
        return fth_fail(FTH_BAD_INPUT, "%s: a line must be file<TAB>label", l->place);
    *tab = 0;
    free(l->path);
    l->path = fth_path_beside(l->file.path, l->line);
    if (!l->path) return fth_fail(FTH_NO_MEMORY, "%s: no memory to read it", l->file.name);
    *label = tab + 1;
    l->count++;
    return FTH_OK;
}

static void next_record(fth_image_list *l, const char **label) {
    int32_t class;
    if (l->count == l->cifar.records) return;
    const uint8_t *pixels = fth_cifar_at(&l->cifar, l->count, &class);
    l->view = (fth_image){3, FTH_CIFAR_SIZE, FTH_CIFAR_SIZE, (uint8_t *)pixels};
    snprintf(l->label, sizeof l->label, "%d", class);
    snprintf(l->place, sizeof l->place, "%.500s: picture %lld", l->file.name, (long long)l->count);
    *label = l->label;
    l->count++;
}

fth_err fth_image_list_next(fth_image_list *l, int read, const fth_image **image,
                            const char **label) {
    *label = NULL;
    if (!l->lines) {
        next_record(l, label);
        *image = &l->view;
        return FTH_OK;
    }
    FTH_TRY(next_line(l, label));
    fth_image_fini(&l->image);
    *image = &l->image;
    if (!*label || !read) return FTH_OK;
    fth_err err = fth_image_read(l->path, &l->image);
    return err ? fth_fail_in(err, "%s", l->place) : FTH_OK;
}

fth_err fth_image_list_map(fth_image_list *l, const fth_image **map) {
    if (!l->lines)
        return fth_fail(FTH_USAGE, "%s: records of CIFAR have no label maps", l->file.name);
    char *path = fth_path_beside(l->file.path, strchr(l->line, 0) + 1);
    if (!path) return fth_fail(FTH_NO_MEMORY, "%s: no memory to read it", l->file.name);
    fth_image_fini(&l->map);
    fth_err err = fth_image_read_numbers(path, &l->map);
    if (err != FTH_OK) err = fth_fail_in(err, "%s", l->place);
    if (err == FTH_OK && l->image.pixels &&
        (l->map.height != l->image.height || l->map.width != l->image.width))
        err =
            fth_fail(FTH_BAD_INPUT, "%s: the map %s has %d x %d pixels and the picture %d x %d",
                     l->place, path, l->map.width, l->map.height, l->image.width, l->image.height);
    free(path);
    *map = &l->map;
    return err;
}

int64_t fth_image_list_count(const fth_image_list *l) {
    return l->count;
}

const char *fth_image_list_place(const fth_image_list *l) {
    return l->place;
}

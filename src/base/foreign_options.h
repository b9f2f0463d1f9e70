/* foreign_options.h: what other programs call the options of this one. */
#ifndef FTH_BASE_FOREIGN_OPTIONS_H
#define FTH_BASE_FOREIGN_OPTIONS_H

#include <stddef.h>

typedef struct fth_option_hint {
    const char *typed;  /* without dashes */
    const char *option; /* what it is called here */
    const char *rest;   /* what follows it in a hint: a value, or a remark */
} fth_option_hint;

/* The hint for a name that is not among names[0..n) but stands for one of them; NULL: none. */
const fth_option_hint *fth_option_hint_for(const char *typed, const char *const *names, size_t n);

#endif

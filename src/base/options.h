/* options.h: one table of options makes the struct, the flags, the YAML keys, --help and the dump.
 *
 * A group of options is a list of lines X(kind, field, default, rule, help):
 *
 *     #define TRAIN_OPTIONS(X)                                                                \
 *         X(F64, lr, "0.0005", FTH_RANGE(0, 1e3), "peak learning rate")                       \
 *         X(I64, warmup_updates, "4000", FTH_MIN(0), "updates of linear warm-up")             \
 *         X(CHOICE, device, "auto", FTH_CHOICES("auto|cpu|cuda|ref"), "where to compute")     \
 *         X(STR, save_dir, "run", FTH_SHOWN_AS("FOLDER"), "where the run is kept")
 *     FTH_OPTIONS(train_options, "training", TRAIN_OPTIONS)
 *
 * declares the struct train_options {double lr; int64_t warmup_updates; ...} and the function
 * train_options_group(&values), which gives its group. The field warmup_updates is the flag
 * --warmup-updates and the YAML key warmup-updates.
 *
 *     kind    C type         written as
 *     I64     int64_t        4000
 *     F64     double         0.0005, 5e-4; finite
 *     BOOL    bool           --strict, --no-strict, --strict=true|false|yes|no|on|off
 *     STR     const char *   any text; never NULL
 *     CHOICE  const char *   one of the words of its rule
 *     LIST    fth_list       text; the flag may be repeated, YAML has [a, b] or {k: v} for "k=v"
 *     SIZE    uint64_t       bytes; 8G, 512M, 1.5T, 4096 (K = 1024 and so on)
 *
 * The default "" of an I64, F64, SIZE or CHOICE means: none; the value is 0 or "" until it is set.
 * What then counts stands at the end of its help, for --help to show: "threads; default: one for
 * each core".
 *
 * Values come from the defaults, then from each --config FILE in turn, then from the command line,
 * which wins no matter where its options stand. A list that is set replaces the list that came from
 * an earlier source. A verb whose table has a field config keeps --config for itself. */
#ifndef FTH_BASE_OPTIONS_H
#define FTH_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/str.h"

typedef struct fth_list {
    const char **items; /* [count] */
    size_t count;
} fth_list;

typedef enum fth_option_kind {
    FTH_OPTION_I64,
    FTH_OPTION_F64,
    FTH_OPTION_BOOL,
    FTH_OPTION_STR,
    FTH_OPTION_CHOICE,
    FTH_OPTION_LIST,
    FTH_OPTION_SIZE
} fth_option_kind;

/* What becomes of an option when a run goes on from a checkpoint. */
typedef enum fth_option_resume {
    FTH_RESUME_UNSTATED,   /* what its group says; an option of a run must have one of the others */
    FTH_RESUME_KEPT,       /* must have the value that the run began with */
    FTH_RESUME_SAID,       /* may have another one, which is said */
    FTH_RESUME_FREE,       /* nothing that is computed depends on it */
    FTH_RESUME_OF_MACHINE, /* nor need it be the same on all ranks */
} fth_option_resume;

/* Which values are allowed. The bounds count for numbers and sizes. */
typedef struct fth_option_rule {
    bool has_low, has_high, above_low, below_high; /* above, below: the bound itself is excluded */
    double low, high;
    const char *choices;  /* "auto|cpu|cuda" */
    const char *shown_as; /* the word for the value in --help, e.g. FILE */
    fth_option_resume resume;
} fth_option_rule;

/* The rules: initialisers of the struct above. */
#define FTH_ANY            .has_low = false
#define FTH_MIN(a)         .has_low = true, .low = (a)
#define FTH_ABOVE(a)       .has_low = true, .low = (a), .above_low = true
#define FTH_RANGE(a, b)    .has_low = true, .low = (a), .has_high = true, .high = (b)
#define FTH_BELOW(a, b)    FTH_RANGE(a, b), .below_high = true /* a <= value < b */
#define FTH_INSIDE(a, b)   FTH_BELOW(a, b), .above_low = true  /* a < value < b */
#define FTH_UP_TO(a, b)    FTH_RANGE(a, b), .above_low = true  /* a < value <= b */
#define FTH_CHOICES(words) .choices = (words)
#define FTH_SHOWN_AS(word) .shown_as = (word)

/* Around the rule of an option of a run: FTH_SAID(FTH_ABOVE(0)). */
#define FTH_KEPT(...)       __VA_ARGS__, .resume = FTH_RESUME_KEPT
#define FTH_SAID(...)       __VA_ARGS__, .resume = FTH_RESUME_SAID
#define FTH_FREE(...)       __VA_ARGS__, .resume = FTH_RESUME_FREE
#define FTH_OF_MACHINE(...) __VA_ARGS__, .resume = FTH_RESUME_OF_MACHINE

typedef struct fth_option {
    const char *field; /* warmup_updates */
    fth_option_kind kind;
    const char *standard; /* the default, as a user would write it */
    fth_option_rule rule;
    const char *help;
    size_t offset; /* of the field in its struct */
} fth_option;

typedef struct fth_option_group {
    const char *title;
    const fth_option *table; /* [count] */
    size_t count;
    void *values;       /* the struct */
    bool *set;          /* [count], by fth_options_parse: given by a file or on the command line */
    const char **typed; /* [count], by fth_options_parse: the value on the command line, or NULL */
    fth_option_resume resume; /* of options that do not say it themselves */
} fth_option_group;

#define FTH_OPTION_TYPE_I64    int64_t
#define FTH_OPTION_TYPE_F64    double
#define FTH_OPTION_TYPE_BOOL   bool
#define FTH_OPTION_TYPE_STR    const char *
#define FTH_OPTION_TYPE_CHOICE const char *
#define FTH_OPTION_TYPE_LIST   fth_list
#define FTH_OPTION_TYPE_SIZE   uint64_t

#define FTH_OPTION_FIELD(kind, field, standard, rule, help) FTH_OPTION_TYPE_##kind field;
#define FTH_OPTION_ROW(kind, field, standard, rule, help)                                          \
    {#field, FTH_OPTION_##kind, standard, {rule}, help, offsetof(options_here, field)},

/* The struct and the function that gives its group. */
#define FTH_OPTIONS(type, title, LINES)                                                            \
    typedef struct type {                                                                          \
        LINES(FTH_OPTION_FIELD)                                                                    \
    } type;                                                                                        \
    FTH_OPTION_GROUP(type##_group, type, title, LINES)

/* A group of a struct that is there already: of the same fields, with other defaults say. */
#define FTH_OPTION_GROUP(function, type, title, LINES)                                             \
    static inline fth_option_group function(type *values) {                                        \
        typedef type options_here;                                                                 \
        static const fth_option table[] = {LINES(FTH_OPTION_ROW)};                                 \
        return (fth_option_group){title, table, sizeof table / sizeof *table, values,              \
                                  NULL,  NULL,  FTH_RESUME_UNSTATED};                              \
    }

/* What a verb says about itself in --help. */
typedef struct fth_usage {
    const char *command;   /* "fathom trace" */
    const char *arguments; /* "MODEL --batch FILE --out FILE", or "" */
    const char *summary;   /* one or more sentences */
    int least, most;       /* how many arguments that are no options; most < 0: any number */
} fth_usage;

/* What came of a command line. The strings of all options belong to its arena. */
typedef struct fth_parsed {
    const char **positionals; /* [n_positionals] what is not an option, in order */
    size_t n_positionals;
    fth_str output; /* --help or --dump-config: the text to print instead of working; else empty */
    fth_arena arena;
} fth_parsed;

/* Fills the structs of all groups from argv[0..argc), which has no program name in it. Errors:
 * FTH_USAGE for the command line; FTH_BAD_INPUT, FTH_NOT_FOUND or FTH_IO for a file, named with its
 * line. parsed may be freed in any case, with fth_parsed_fini. */
fth_err fth_options_parse(const fth_usage *usage, fth_option_group *groups, size_t n, int argc,
                          char *const *argv, fth_parsed *parsed);
void fth_parsed_fini(fth_parsed *parsed);

/* Was the option of this field given by a file or on the command line? */
bool fth_option_was_set(const fth_option_group *groups, size_t n, const char *field);

/* Notes that the field has got a value from elsewhere: it counts as given, in a dump too. */
void fth_option_give(const fth_option_group *groups, size_t n, const char *field);
/* The other way round: one that says how a process was started and not what it does. */
void fth_option_forget(const fth_option_group *groups, size_t n, const char *field);

/* The value that the option of this field has on the command line, NULL where it is not there. */
const char *fth_option_typed(const fth_option_group *groups, size_t n, const char *field);

/* What becomes of the option of this name ("warmup-updates") when a run goes on; UNSTATED also for
 * a name that no option has. */
fth_option_resume fth_option_on_resume(const fth_option_group *groups, size_t n, const char *name,
                                       size_t length);

/* Appends all values as YAML that reads back as the same values. */
fth_err fth_options_dump(const fth_option_group *groups, size_t n, fth_str *out);

/* Appends the text of --help. */
fth_err fth_options_help(const fth_usage *usage, const fth_option_group *groups, size_t n,
                         fth_str *out);

#endif

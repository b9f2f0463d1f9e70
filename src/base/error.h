/* error.h: how functions of fathom fail.
 *
 * A function that can fail returns fth_err. The message of the newest failure of the calling
 * thread is kept beside it, like errno: the library itself neither prints nor exits. A message
 * is one line, names the thing and its value, and says the rule that was broken. */
#ifndef FTH_BASE_ERROR_H
#define FTH_BASE_ERROR_H

typedef enum fth_err {
    FTH_OK = 0,
    FTH_USAGE,      /* wrong option or argument                          -> exit 2 */
    FTH_BAD_CONFIG, /* a configuration that cannot be                    -> exit 2 */
    FTH_BAD_INPUT,  /* a file with wrong content, named with its line    -> exit 2 */
    FTH_NOT_FOUND,  /* a file or folder that is not there                -> exit 2 */
    FTH_IO,         /* reading or writing failed (full disk, ...)        -> exit 1 */
    FTH_NO_MEMORY,  /* memory, or the memory budget, is too small        -> exit 1 */
    FTH_FAILED,     /* anything else that failed while running           -> exit 1 */
    FTH_DIVERGED,   /* training failed (doc/analyses.md)                 -> exit 3 */
    FTH_STOPPED,    /* SIGINT asked for the end, a checkpoint is saved   -> exit 130 */
    FTH_TERMINATED  /* the same for SIGTERM                              -> exit 143 */
} fth_err;

/* Keeps the formatted message for this thread and returns code. */
fth_err fth_fail(fth_err code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "context: " before the message kept, and returns code. */
fth_err fth_fail_in(fth_err code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "no memory for THING". */
fth_err fth_no_memory(const char *thing);

#ifdef __clang_analyzer__ /* it looks at one file at a time and must be told what they return */
#define fth_fail(code, ...)    ((fth_fail)(code, __VA_ARGS__), (code))
#define fth_fail_in(code, ...) ((fth_fail_in)(code, __VA_ARGS__), (code))
#define fth_no_memory(thing)   ((fth_no_memory)(thing), FTH_NO_MEMORY)
#endif

/* The message of the newest failure of this thread; "" before the first. */
const char *fth_error_message(void);

/* The exit status of an error (doc/guarantees.md#exit-status). */
int fth_exit_status(fth_err code);

/* Returns from the calling function when call fails. */
#define FTH_TRY(call)                                                                              \
    do {                                                                                           \
        fth_err fth_try_err_ = (call);                                                             \
        if (fth_try_err_ != FTH_OK) return fth_try_err_;                                           \
    } while (0)

/* The same for functions with one way out: sets err and jumps to label. */
#define FTH_TRY_OR(err, call, label)                                                               \
    do {                                                                                           \
        if (((err) = (call)) != FTH_OK) goto label;                                                \
    } while (0)

#endif

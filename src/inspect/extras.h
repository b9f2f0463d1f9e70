/* extras.h: files beside a run's log that its page shows. Both may be missing, broken or huge. */
#ifndef FTH_INSPECT_EXTRAS_H
#define FTH_INSPECT_EXTRAS_H

#include <jansson.h>

/* RUN/diverged.json without its long lists of numbers (a string stands for each); null without it;
 * a string that says why when it cannot be read. NULL: no memory. */
json_t *fth_extras_diverged(const char *folder);

/* The first lines of RUN/samples.jsonl, as `fathom generate --format jsonl` writes them: an array
 * of {"source": TEXT, "text": TEXT, "score": X}; empty without it. NULL: no memory. */
json_t *fth_extras_samples(const char *folder);

#endif

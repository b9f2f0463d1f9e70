/* run_speech.h: how a data set of recordings and an encoder-decoder find each other. */
#ifndef FTH_RUN_RUN_SPEECH_H
#define FTH_RUN_RUN_SPEECH_H

#include "run/run.h"

/* The front and its sizes in a configuration, by the data. FTH_USAGE where its architecture cannot
 * read recordings. */
fth_err fth_run_speech_config(const fth_run_spec *spec, const fth_dataset *data, fth_config *c);

/* What hides parts of recordings in training. */
void fth_run_speech_items(fth_run_items *items, const fth_run_spec *spec);

#endif

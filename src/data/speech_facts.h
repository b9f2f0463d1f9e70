/* speech_facts.h: FOLDER/speech.json: how the recordings of a data set became features. A model
 * that was trained on it has the file too. */
#ifndef FTH_DATA_SPEECH_FACTS_H
#define FTH_DATA_SPEECH_FACTS_H

#include "audio/features.h"

/* Without the file there is no speech. FTH_BAD_INPUT with the file and the rule. */
fth_err fth_speech_facts_write(const fth_speech_facts *f, const char *folder);
fth_err fth_speech_facts_load(fth_speech_facts *f, const char *folder);

#endif

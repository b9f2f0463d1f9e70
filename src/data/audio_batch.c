/* audio_batch.c: threads that each take the next recording until none is left. */
#include "data/audio_batch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 1024 };

typedef struct work {
    fth_audio_item *items;
    int64_t n, max_frames;
    const fth_filter_bank *bank;
    const fth_speech_facts *facts;
    atomic_llong next;
} work;

static void *take_items(void *argument) {
    work *w = argument;
    for (int64_t i; (i = atomic_fetch_add(&w->next, 1)) < w->n;) {
        fth_audio_item *item = &w->items[i];
        item->err =
            fth_features_read(w->bank, w->facts, &item->clip, w->max_frames, &item->features);
        if (item->err != FTH_OK) item->message = strdup(fth_error_message());
    }
    return NULL;
}

/* Where no thread can be started, this one does the work. */
fth_err fth_audio_batch_read(fth_audio_item *items, int64_t n, const fth_filter_bank *bank,
                             const fth_speech_facts *facts, int64_t max_frames, int threads) {
    pthread_t thread[MOST_THREADS];
    work w = {.items = items, .n = n, .max_frames = max_frames, .bank = bank, .facts = facts};
    int started = 0;
    const int64_t most = threads < MOST_THREADS ? threads : MOST_THREADS;
    while (started + 1 < most && started + 1 < n &&
           pthread_create(&thread[started], NULL, take_items, &w) == 0)
        started++;
    take_items(&w);
    for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
    for (int64_t i = 0; i < n; i++)
        if (items[i].err == FTH_NO_MEMORY)
            return fth_fail(FTH_NO_MEMORY, "%s",
                            items[i].message ? items[i].message : "no memory for a recording");
    return FTH_OK;
}

void fth_audio_item_fini(fth_audio_item *item) {
    fth_features_fini(&item->features);
    free((char *)item->clip.path);
    free(item->text);
    free(item->place);
    free(item->message);
    *item = (fth_audio_item){0};
}

/* optimiser_options.c: turns the options of the optimiser into a training's recipe, and checks what
 * single options cannot. */
#include "cli/optimiser_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/option_uses.h"

static fth_err parse_betas(const char *text, double *beta1, double *beta2) {
    char *end;
    *beta1 = strtod(text, &end);
    bool good = end != text && *end == ',';
    const char *second = good ? end + 1 : text;
    *beta2 = strtod(second, &end);
    good = good && end != second && *end == '\0';
    if (good && *beta1 >= 0 && *beta1 < 1 && *beta2 >= 0 && *beta2 < 1) return FTH_OK;
    return fth_fail(FTH_USAGE,
                    "--adam-betas %s: must be two numbers from 0 to below 1, as 0.9,0.98", text);
}

fth_err fth_check_schedule(const fth_option_group *groups, size_t n,
                           const fth_optimiser_options *o) {
    static const char *const polynomial[] = {"power", NULL}, *const wsd[] = {"decay_updates", NULL},
                             *const both[] = {"end_learning_rate", NULL};
    const bool falls = strcmp(o->lr_scheduler, "polynomial") == 0;
    const bool stays = strcmp(o->lr_scheduler, "wsd") == 0;
    if (!falls)
        FTH_TRY(fth_refuse_options(groups, n, polynomial, "is for --lr-scheduler polynomial"));
    if (!stays) FTH_TRY(fth_refuse_options(groups, n, wsd, "is for --lr-scheduler wsd"));
    if (falls || stays) return FTH_OK;
    return fth_refuse_options(groups, n, both, "is for --lr-scheduler polynomial and wsd");
}

fth_err fth_recipe_from_options(const fth_optimiser_options *o, fth_recipe *out) {
    *out =
        (fth_recipe){.schedule = {.lr = o->lr,
                                  .lr_start = o->warmup_init_lr,
                                  .warmup = o->warmup_updates,
                                  .total = o->max_update,
                                  .lr_end = o->end_learning_rate,
                                  .power = o->power > 0 ? o->power : 1,
                                  .decay = o->decay_updates ? o->decay_updates : o->max_update / 5},
                     .eps = o->adam_eps,
                     .weight_decay = o->weight_decay,
                     .clip = o->clip_norm,
                     .smoothing = o->label_smoothing};
    FTH_TRY(fth_schedule_find(o->lr_scheduler, &out->schedule.kind));
    return parse_betas(o->adam_betas, &out->beta1, &out->beta2);
}

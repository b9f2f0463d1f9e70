/* init.c: fathom init: a fresh model folder from a config.json. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/verb.h"
#include "store/config_json.h"
#include "train/weights.h"

#define INIT_OPTIONS(X)                                                                            \
    X(STR, config, "", FTH_SHOWN_AS("FILE"), "config.json of the model")                           \
    X(I64, seed, "1", FTH_MIN(0), "of the random numbers")                                         \
    X(F64, init_scale, "1", FTH_ABOVE(0),                                                          \
      "multiplies the initial weights of the layers, whatever the method makes of them")           \
    X(STR, out, "", FTH_SHOWN_AS("FOLDER"), "model folder to write")                               \
    X(BOOL, explain, "false", FTH_ANY,                                                             \
      "print role, rule, log(gain), gain and std of every parameter; needs no --out")
FTH_OPTIONS(init_options, "init", INIT_OPTIONS)

static void explain(const fth_model *m) {
    static const char *const rules[] = {"const", "xavier_uniform", "xavier_normal", "normal",
                                        "mean_of_row"};
    printf("%-58s %-12s %-14s %10s %10s %12s\n", "parameter", "role", "rule", "log(gain)", "gain",
           "std or value");
    for (int32_t i = 0; i < m->params.n; i++) {
        const fth_param *p = &m->params.param[i];
        bool xavier =
            p->init.rule == FTH_INIT_XAVIER_UNIFORM || p->init.rule == FTH_INIT_XAVIER_NORMAL;
        printf("%-58s %-12s %-14s ", p->name, fth_role_name(p->role), rules[p->init.rule]);
        if (xavier)
            printf("%10.6g %10.6g ", log(p->init.gain), p->init.gain);
        else
            printf("%10s %10s ", "-", "-");
        if (p->init.rule == FTH_INIT_MEAN_OF_ROW)
            printf("%12s\n", "1/(row+1)");
        else
            printf("%12.6g\n", fth_init_std(p));
    }
}

static fth_err run(const init_options *o) {
    if (!o->config[0]) return fth_fail(FTH_USAGE, "--config FILE is missing");
    if (!o->out[0] && !o->explain) return fth_fail(FTH_USAGE, "--out FOLDER is missing");
    fth_config config;
    fth_model model;
    FTH_TRY(fth_config_read(o->config, &config));
    fth_err err = fth_model_init(&model, &config);
    if (err != FTH_OK) return fth_fail_in(err, "%s", o->config);
    fth_model_scale_init(&model, o->init_scale);
    if (o->explain) explain(&model);
    if (o->out[0]) {
        float *flat = malloc(sizeof *flat * (size_t)model.params.size);
        if (flat) {
            fth_model_draw(&model, (uint64_t)o->seed, flat);
            err = fth_weights_write(o->out, &model, flat, NULL);
        } else {
            err = fth_fail(FTH_NO_MEMORY, "no memory for %lld parameters",
                           (long long)model.params.size);
        }
        free(flat);
    }
    fth_model_fini(&model);
    return err;
}

fth_err fth_verb_init(int argc, char **argv) {
    init_options options;
    fth_option_group groups[] = {init_options_group(&options)};
    const fth_usage usage = {"fathom init", "--config FILE --out FOLDER",
                             "Writes a model folder with fresh parameters.", 0, 0};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, 1, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) err = run(&options);
    fth_parsed_fini(&parsed);
    return err;
}

/* pipeline.h: a model whose layers are cut into stages, each on a rank of its own
 * (graph/stages.h). Micro-batches go through the stages one after the other: first forward, and as
 * soon as one has come to the end, one forward and one backward in turn, so that a stage keeps
 * activations of no more micro-batches than there are stages above it and itself.
 *
 * Ranks are numbered pipeline by pipeline: rank r has stage r % stages of group r / stages. Groups
 * take the micro-batches in turn; the ranks of a stage add up their gradients in that order. So the
 * gradient is that of sum.h, to the bit. Every rank has all parameters, and updates its slice. */
#ifndef FTH_TRAIN_PIPELINE_H
#define FTH_TRAIN_PIPELINE_H

#include "train/trainer.h"

/* Refuses numbers of stages that ranks cannot share, and devices that cannot run parts of a
 * program. */
fth_err fth_pipeline_check(const fth_ranks *ranks, const fth_device *dev, int stages);

/* graph: the trainer's, which is cut; how: its program. */
fth_err fth_pipeline_new(fth_trainer *t, const fth_trainer_spec *spec, const fth_graph *graph,
                         const fth_program_spec *how, fth_pipeline **out);
void fth_pipeline_free(fth_pipeline *p);
/* The first program of this stage; the pipeline's. */
fth_program *fth_pipeline_program(const fth_pipeline *p);

/* A program of the whole model, to be freed: to look for what went wrong. */
fth_err fth_pipeline_whole(fth_trainer *t, fth_program **out);

/* The trainer's sum of the gradients of n batches, own slice; losses [rounds, 2] where the loss
 * is. The step's rows go on. */
fth_err fth_pipeline_sum(fth_trainer *t, const fth_batch *const *batches, int n, fth_step *step,
                         double *losses);

/* The newest sum as a whole to the gradients of rank 0. */
fth_err fth_pipeline_gather(fth_trainer *t);

/* Which layers each stage has, and its share of the work: "1 to 3 (48 %), 4 to 6 (52 %)". */
void fth_pipeline_describe(const fth_pipeline *p, char *text, size_t size);
/* Of an update of so many batches, the share of the time in which stages wait for the first batch
 * to come in and the last one to leave. */
double fth_pipeline_idle(int stages, int batches);

/* Bytes on the device beside the trainer's program. */
int64_t fth_pipeline_bytes(const fth_pipeline *p);

#endif

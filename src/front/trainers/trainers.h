/*
 * trainers: the HTTP interfaces of graders and code servers that reinforcement-learning trainers call.
 *
 *   reward.c         reward URLs of slime and OpenRLHF
 *   scalebox.c       ScaleBox: POST /common_evaluate_batch
 *   nemo.c           NeMo-Skills: POST /execute
 *   nemo_sessions.c  sessions of NeMo-Skills
 *
 * Each is a front of its own; all gradings go by front/grading/gradings.h.
 */
#ifndef FRONT_TRAINERS_TRAINERS_H
#define FRONT_TRAINERS_TRAINERS_H

#include "front/service/front.h"

extern const struct front reward_front, scalebox_front, nemo_front;

#endif

#ifndef PAUSED_SHADOW_H
#define PAUSED_SHADOW_H

#include <stdbool.h>

void arm_pause(const char *place, bool stop); /* once; stop: the kernel does not go on */
bool paused(void);                            /* an access came to the place */
void pause_at(const char *place);
void wait_for_the_pause(void);
void access_is_done(void);

#endif

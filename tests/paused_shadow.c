/* shadow.c with calls in the places where another worker could meet a cell that is not whole. It takes the place of the
 * file of libsimt.a. */
void pause_at(const char *place);
#define SIMT_PAUSE(place) pause_at(#place)
#include "shadow.c"

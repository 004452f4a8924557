#include "../simt/include/simulated.h" /* the other headers there are no business of a program for a card */

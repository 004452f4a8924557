/* Is the text of a hole device code that stays inside the hole? */
#ifndef LEXER_H
#define LEXER_H

#include <stdbool.h>
#include <stddef.h>

/* `line`: of the file, where the text begins. On false, `why` holds the line and the reason. It is asked of text, before a
 * compiler has seen it; what calls compile to is asked of the object file (grade.c). */
bool is_device_code(const char *text, int line, char *why, size_t room);

#endif
